/**
 * Command lines and lines of scripts of public tutorials for Slurm, by where they stand. ID and ARRAY are a job's and an array's, FILE is a script,
 * PART a partition and NODE a node that are there. What srun and salloc run is `true`, and sizes that a small machine does not have are smaller.
 */
export const TUTORIALS: Readonly<Record<string, readonly string[]>> = {
  'https://hpc.hku.hk/guide/slurm-guide/slurm-job-array/': [
    'sbatch --array=1-20 FILE',
    'sbatch --array=1,2,4,8 FILE',
    '#SBATCH --array=1-9:3',
    '#SBATCH --output=myjob.%A_%a.out',
    '#SBATCH --error=myjob.%A_%a.err',
    '#SBATCH -a 1-50%10',
    'scontrol update ArrayTaskThrottle=20 JobId=ARRAY',
    '#SBATCH --job-name=array_job',
    '#SBATCH --output=array_job_%A_%a.out',
    '#SBATCH --error=array_job_%A_%a.err',
    '#SBATCH --array=1-22',
    '#SBATCH --time=01:00:00',
    '#SBATCH --partition=intel',
    '#SBATCH --ntasks=1',
    '#SBATCH --mem=6G',
  ],
  'https://documentation.sigma2.no/jobs/job_scripts/array_jobs.html': [
    'sbatch --array=1-100 FILE',
    '#SBATCH --array=900-1100',
  ],
  'https://kcniconfluence.camh.ca/display/SCC/Job+dependencies': [
    'sbatch --array=0-9 --wrap="Rscript myscript.R chunk_$SLURM_ARRAY_TASK_ID.txt"',
    'sbatch --depend=afterok:ID --wrap="Rscript mymergescript.R"',
    '#SBATCH --dependency=afterok:ARRAY',
    '#SBATCH --dependency=afternotok:ID',
    '#SBATCH --dependency=afterany:ID',
  ],
  'https://hpcf.cyi.ac.cy/documentation/job_arrays.html': [
    'sbatch --array=4,6,12,16  FILE',
    '#SBATCH --array=1-100%5',
    'scancel ARRAY_1',
    'scancel ARRAY',
  ],
  'https://servicedesk.surf.nl/wiki/display/WIKI/SLURM+batch+system': [
    '#SBATCH -t 1:30:00',
    '#SBATCH -J myfirstjob',
  ],
  'https://sph.umich.edu/biostat/computing/cluster/tips.html': [
    '#SBATCH --mail-type=ALL',
    '#SBATCH --time=1-0',
    '#SBATCH --job-name=array_job_test',
  ],
  'https://research-software-skills-bath.github.io/intro-anatra/02_episode.html': [
    'sinfo',
    'squeue',
    'squeue --user ada',
    'squeue --job ID',
    'sbatch FILE',
    'scontrol hold ID',
    'scontrol release ID',
    'scontrol show job ID',
    'scontrol show node NODE',
  ],
  'https://arc.vt.edu/userguide/slurm/': [
    'squeue -u ada',
    'sacct -j ID',
    'scancel ID',
    '#SBATCH -J slurm_huckleberry',
    '#SBATCH -p normal_q',
    '#SBATCH -n 1',
    '#SBATCH -t 00:05:00',
    '#SBATCH --mem=100M',
  ],
  'https://saratahosting.com/manpages/sbatch.1.html': [
    '#SBATCH --array=0-15',
    '#SBATCH --array=0,6,16-32',
    '#SBATCH --array=0-15:4',
  ],
  'https://manpages.ubuntu.com/manpages/mantic/man1/salloc.1.html': ['salloc -n16 a.out'],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/scicomp/nbscript.rst': ['#SBATCH --time=1-12:00'],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/apps/aims.rst': [
    '#SBATCH --constraint=x64',
    '#SBATCH --mem-per-cpu=2000M',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/apps/comsol.rst': [
    '#SBATCH --mem-per-cpu=2G',
    '#SBATCH --exclusive',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/apps/fmriprep.rst': [
    '#SBATCH --array=1',
    '#SBATCH --output=logs/fmriprep_%A_%a.out',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/apps/llms.rst': [
    '#SBATCH --output huggingface.%J.out',
    '#SBATCH --error huggingface.%J.err',
    '#SBATCH --gpus=1',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/apps/matlab.rst': [
    '#SBATCH -o serial_Matlab.out',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/discipline/machinelearning.rst': [
    '#SBATCH --mail-type=end',
    '#SBATCH --mail-user=ada@example.org',
    'sacct -j ID -o TRESUsageInAve,TRESUsageInMax,MaxRSS,MaxVMSize,Elapsed,State -p',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/examples/array/pi_array_grouped.sh': [
    '#SBATCH --job-name=pi-array-grouped',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/examples/lammps/indent/lammps_indent.sh': [
    '#SBATCH --ntasks-per-node=4',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/examples/pytorch/pytorch_mnist_min_cuda.sh':
    ['#SBATCH --gres=min-cuda-cc:80'],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/usage/faq.rst': [
    '#SBATCH --no-requeue',
    'sacctmgr -s show user $USER format=user,account,grptresrunmins%70',
    'sacctmgr show user $USER',
    'squeue -h -j ID -o %L',
    'scontrol show node NODE',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/usage/localstorage.rst': [
    '#SBATCH --tmp=50G',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/examples/monitoring/gpu.rst': ['seff ID'],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/tut/dependency.rst': [
    'sbatch --dependency=afterok:ID FILE',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/apps/keras.rst': [
    'srun --gpus=1 --pty true',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/examples/mpi/hello.rst': [
    'srun --time=00:05:00 --mem-per-cpu=200M --ntasks=2 true',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/tut/interactive.rst': [
    'srun -p PART --time=2:00:00 --mem=600M --pty true',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/tut/parallel-mpi.rst': [
    'srun --nodes=1 --ntasks=2 --time=00:10:00 --mem=500M true',
    'srun --ntasks-per-node=1 --time=00:10:00 --mem=500M true',
    '#SBATCH --ntasks-per-node=24',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/tut/parallel-shared.rst': [
    'srun --cpus-per-task=2 --time=00:10:00 --mem=1G true',
  ],
  'https://github.com/AaltoSciComp/scicomp-docs/blob/HEAD/triton/usage/storage.rst': [
    'sacct -o jobid%10,user%8,jobname%10,NodeList,MaxDiskRead,MaxDiskWrite -u $USER',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/apps/alphafold.md': [
    '#SBATCH --account=project_2001659',
    '#SBATCH --gres=gpu:a100:1',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/apps/amber.md': [
    '#SBATCH --gpus-per-node=1',
    'srun -n 1 -p PART -t 00:05:00 --account=project --pty true',
    'srun --cpu-bind=none true',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/apps/cp2k.md': ['#SBATCH --hint=nomultithread'],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/computing/running/example-job-scripts-mahti.md': [
    '#SBATCH --hint=multithread',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/computing/running/creating-job-scripts-roihu.md': [
    '#SBATCH --bb="#BB_LUA SBF storagesize=100G path=/run/sbb/ada"',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/support/tutorials/services-for-courses.md': [
    '#SBATCH --reservation=bootcamp',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/apps/matlab.md': ['scontrol show lic=mdcs'],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/apps/molpro.md': [
    'sacct -j ID --format=JobID,MaxRSS,Elapsed,State',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/apps/paraview.md': [
    'srun --partition=PART --time=01:00:00 --mem=300M --account=project --x11=first --pty true',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/apps/vasp.md': [
    'srun -p PART -A project -t 5 -n 2 true',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/computing/roihu-disk.md': [
    'srun -p PART --nodes 1 --account project_2001659 --bbf bb.spec --pty true',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/computing/connecting/index.md': [
    'srun --jobid=ID --overlap --pty true',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/support/tutorials/ml-starting.md': [
    'squeue -l -u $USER',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/computing/running/submitting-jobs.md': [
    'squeue --me',
    'scancel DONE',
    'sacct --starttime now-7days',
    'scancel 3609650',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/computing/running/batch-job-partitions.md': [
    'sinfo --summarize',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/support/faq/how-much-memory-my-job-needs.md': [
    'sacct -o jobid,reqmem,maxrss,averss,elapsed -j ID',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/support/faq/when-will-my-job-run.md': [
    'squeue -u $USER -o "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %Q"',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/computing/running/throughput.md': [
    'sacctmgr show assoc user=$USER format=Account,Partition,MaxJobs,MaxSubmit -p',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/support/tutorials/biojobs-on-puhti.md': [
    'sacct -S 2026-01-01',
  ],
  'https://github.com/Lumi-supercomputer/lumi-userguide/blob/HEAD/docs/development/debugging/gdb4hpc.md': [
    'sstat ID',
  ],
  'https://github.com/Lumi-supercomputer/lumi-userguide/blob/HEAD/docs/helpdesk/issues.md': [
    'sinfo -R --nodes=NODE',
  ],
  'https://github.com/Lumi-supercomputer/lumi-userguide/blob/HEAD/docs/runjobs/scheduled-jobs/interactive.md':
    ['srun --cpu_bind=none --nodes=1 --pty true', 'sacct --noheader -X -P -oNodeList --jobs=ID'],
  'https://github.com/Lumi-supercomputer/lumi-userguide/blob/HEAD/docs/runjobs/scheduled-jobs/slurm-quickstart.md':
    ['squeue --me --start'],
  'https://github.com/Lumi-supercomputer/lumi-userguide/blob/HEAD/docs/runjobs/scheduled-jobs/throughput.md':
    ['sbatch --array=1-16 FILE'],
  'https://github.com/Lumi-supercomputer/lumi-userguide/blob/HEAD/docs/runjobs/scheduled-jobs/container-jobs.md':
    ['srun --partition=PART --account=account --mpi=pmi2 --nodes=1 true'],
  'https://github.com/PrincetonUniversity/hpc_beginning_workshop/blob/HEAD/c/gpu/openmp/job.slurm': [
    '#SBATCH --mail-type=all',
  ],
  'https://github.com/PrincetonUniversity/hpc_beginning_workshop/blob/HEAD/python/cpu/numpy/README.md': [
    'sbatch --reservation=bootcamp1 FILE',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/basic/scheduling/README.md': [
    '#SBATCH -N 1',
    '#SBATCH -c 1',
    '#SBATCH -p batch',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/beginners/tensorflow.md': [
    '#SBATCH --qos=normal',
    '#SBATCH -J BADSerial',
    '#SBATCH -N 2',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/bigdata/README.md': [
    '#SBATCH -n 3',
    'salloc -N 1 --ntasks-per-node 1 -c 1 --exclusive true',
    '#SBATCH -c 16',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/bigdata/scripts/launcher.Spark.sh': ['#SBATCH --qos normal'],
  'https://github.com/ULHPC/tutorials/blob/HEAD/containers/singularity/README.md': [
    '#SBATCH -G 1',
    '#SBATCH -p gpu',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/deep_learning/basics/tfgpu.sh': [
    '#SBATCH --ntasks-per-core=1',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/deep_learning/horovod/README.md': [
    '#SBATCH -t 30',
    '#SBATCH --export=ALL',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/python/basics/example5/scoop_launcher.sh': [
    '#SBATCH -d singleton',
    '#SBATCH -m cyclic',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/multiphysics/README.md': ['#SBATCH --ntasks-per-socket=4'],
  'https://github.com/ULHPC/tutorials/blob/HEAD/maths/Cplex-Gurobi/scripts/cplex_dist.slurm': [
    '#SBATCH --tasks=14',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/python/advanced/celery/code/launcher_celery_flower.sh': [
    '#SBATCH -N1',
    '#SBATCH -c1',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/scheduling/advanced/README.md': [
    'salloc -p PART -C x64 true',
    'squeue -l',
    'squeue -p PART',
    'squeue -t PD',
    'squeue -t R',
    'sinfo -s',
    'sinfo -N',
    'sinfo -T',
    'sacctmgr show user $USER format=user%20s,defaultaccount%30s',
    'sprio -l',
    'squeue --start -u $USER',
    'sstat -j ID',
    'sstat -j ID --format=AveCPU,AveRSS,AveVMSize,MaxRSS,MaxVMSize',
    'sstat -p -j ID --format=AveCPU,AveRSS,AveVMSize,MaxRSS,MaxVMSize',
    'sstat -P -j ID --format=AveCPU,AveRSS,AveVMSize,MaxRSS,MaxVMSize',
    'sacct -j ID',
    'sacct -j ID -l',
    'sacct -X -j ID',
    'sacct -X -j ID -l',
    'sacct --starttime 2019-06-19 -u $USER',
    'sacct -X --starttime 2019-06-19 -u $USER',
    'scancel --name=nobodys',
    'scancel -n nobodys',
    'scancel -u $USER -t pending',
    'scancel -u $USER --partition=PART',
    'scancel -u $USER -p PART',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/sequential/manytasks-manynodes2/scripts/exo0_slurm_array/run_slurm.sh':
    ['sbatch --array=0-9 FILE'],
  'https://github.com/ULHPC/tutorials/blob/HEAD/parallel/basics/README.md': [
    'sbatch --ntasks-per-node 1 FILE openmpi',
    '#SBATCH --ntasks-per-socket 1',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/sequential/basics/README.md': [
    'srun -n1 --exclusive -c 1 --cpu-bind=cores true',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/sequential/manytasks-manynodes/README.md': [
    'srun --no-kill --wait=0 true',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/python/advanced/dask-ml/README.md': [
    'srun --exclusive -N 1 -n 1 -c 1 -w NODE true',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/parallel/Cardiac_demo/ITAC-batch.sh': ['srun -n 2 true'],
  'https://github.com/ULHPC/tutorials/blob/HEAD/deep_learning/scalable/scripts/cifar_resnet.sh': [
    'srun -l true',
    '#SBATCH --reservation=hpcschool',
  ],
  'https://github.com/UNM-CARC/QuickBytes/blob/HEAD/MATLAB%20Deep%20Learning%20on%20Xena.md': [
    '#SBATCH -G 2',
  ],
  'https://github.com/UNM-CARC/QuickBytes/blob/HEAD/Paraview_Hopper.md': [
    'salloc --nodes 1 --exclusive --partition PART --time 00:30:00 true',
  ],
  'https://github.com/UNM-CARC/QuickBytes/blob/HEAD/X11_forwarding.md': [
    'srun --x11 --nodes=1 --ntasks=1 true',
  ],
  'https://github.com/UNM-CARC/QuickBytes/blob/HEAD/mpiCASA.md': [
    'srun --partition PART --nodes 1 --tasks-per-node 2 --pty true',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/AI/Anthropic/install_claude.sh': [
    'salloc --partition=PART --time=02:00:00 --mem=300M --cpus-per-task=2 true',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/AI/PyTorch/pytorch_interactive.sh': [
    'salloc -p PART -t 0-06:00 --mem=300 --gres=gpu:1 true',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/AI/PyTorch/run.sbatch': [
    '#SBATCH -e pytorch_%j.err',
    'srun -c 1 --gres=gpu:1 true',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Applications/CryoSPARC/configure.sh': [
    '#SBATCH --gres-flags=enforce-binding',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Applications/Dynamite/README.md': ['#SBATCH -x holy2a19307'],
  'https://github.com/fasrc/User_Codes/blob/HEAD/IQSS-slurm-examples/basicbatch.slurm': [
    '#SBATCH --open-mode=append',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/GPU_Computing/Dist_GPU_Computing/MPI_and_CUDA/README.md': [
    'srun -n 2 --mpi=pmix true',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/GPU_Computing/Dist_GPU_Computing/NCCL_and_CUDA/MultiNode/README.md':
    ['srun -n 2 --export=ALL true'],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Notes/README.md': ['sinfo -p PART'],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Notes/JobArrays/commands_for_exercises.txt': [
    'scontrol show jobid -d ID',
    'squeue –u $USER --all',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Notes/augustus-install.md': [
    'salloc -p PART --mem-per-cpu 100m -t 0-03:00 -c 1 true',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Training/Distributed_GPU_Computing/Exercise6/README.md': [
    'sbatch FILE train_mnist_ddp.py --epochs 20 --batch-size 128',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Example_Recipes/Recipe3/README.md': ['srun -n 1 -c 1 true'],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Example_Recipes/pytorch/README.md': [
    'srun --pty -p PART -t 0-03:00 --mem 300 --gres=gpu:1 true',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Applications/TotalView/README.md': [
    'salloc -p PART --x11 -n 2 -t 00-02:00 --mem-per-cpu=100 true',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Parallel_Computing/Parallel_HDF5/Example1/run.sbatch': [
    'srun -n 1 -N 1 --mpi=pmix true',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Languages/C/README.md': [
    'salloc -p PART --nodes=1 --cpus-per-task=2 --mem=0.3GB --time=0-01:00:00 true',
  ],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Languages/Cpp/Example1/README.md': [
    'salloc --partition PART --time 00:30:00 -c 2 --mem-per-cpu 0.1G true',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/deep_learning/huggingface/README.md': [
    '#SBATCH -A 12345',
    '#SBATCH -t 40',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/support/tutorials/MaxQuant-tutorial.md': [
    'sacct –l –j ID',
  ],
  'https://github.com/UNM-CARC/QuickBytes/blob/HEAD/alphafold.md': ['#SBATCH --Nodes 1'],
  'https://github.com/fasrc/User_Codes/blob/HEAD/Applications/LANDIS/README.md': [
    'salloc -p PART --time=1:00:00 --mem=300 true',
  ],
  'https://github.com/ULHPC/tutorials/blob/HEAD/cuda/exercises/convolution/README.md': [
    'salloc --reservation=hpcschool-gpu -p PART -C gpu --ntasks-per-node 1 -c7 -G 1 true',
  ],
  'https://github.com/CSCfi/csc-user-guide/blob/HEAD/docs/data/sensitive-data/tutorials/sdsi.md': [
    'sacct -j 123456',
  ],
};
