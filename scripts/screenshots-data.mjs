// What the screenshots show beside the demo's own jobs: people, applications, data, failures, a group, policies, what-ifs.

const SIMULATED = { os: 'simulated', architecture: 'simulated' };

/** Fills the service if it is fresh; answers with ids of what is worth a picture, and with a key for each role that has one. */
export async function fillDemo(url, key, { fresh, warmupS }) {
  async function ask(query, variables = {}, as = key) {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${as}` },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = await response.json();
    if (errors) throw new Error(errors[0].message);
    return data;
  }
  const sites = (await ask('{ sites { nodes { id name } } }')).sites.nodes;
  const siteOf = (name) => sites.find((site) => site.name === name).id;
  const ids = async () => ({ ...(await find(ask, siteOf)), invitation: fresh && (await invite(ask, url)) });
  if (!fresh)
    return {
      keys: { [(await ask('{ viewer { role } }')).viewer.role.toLowerCase()]: key },
      ids: await ids(),
    };
  const keys = await fill(ask, sites, siteOf, warmupS);
  return {
    keys: { admin: key, operator: keys['oper.ator'], user: keys['amara.okafor'] },
    ids: await ids(),
  };
}

/** One is signed in by password; answers with the invitation of another. */
async function invite(ask, url) {
  const { users } = await ask('{ users { nodes { id name } } }');
  const [accepted, open] = await Promise.all(
    ['noor.haddad', 'mei.tanaka'].map(async (name) => {
      const { inviteUser } = await ask(
        'mutation ($user: ID!) { inviteUser(input: { userId: $user }) { invitation } }',
        { user: users.nodes.find((one) => one.name === name).id },
      );
      return inviteUser.invitation;
    }),
  );
  await fetch(`${url}/sign-in/invitation`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'user-agent': 'Firefox on Linux' },
    body: JSON.stringify({ invitation: accepted, password: 'seven quiet harbors' }),
  });
  return open;
}

/** Answers with the keys of its people, by name. */
async function fill(ask, sites, siteOf, warmupS) {
  const places = { local: [48.14, 11.58] };
  for (const [name, [latitude, longitude]] of Object.entries(places)) {
    await ask('mutation ($input: UpdateSiteInput!) { updateSite(input: $input) { site { id } } }', {
      input: { siteId: siteOf(name), latitude, longitude },
    });
  }
  const keys = {};
  for (const [name, userClass, quotaShare, role] of [
    ['amara.okafor', 'GOLD', 3, 'USER'],
    ['lukas.brandt', 'SILVER', 2, 'USER'],
    ['mei.tanaka', 'SILVER', 2, 'USER'],
    ['noor.haddad', 'REGULAR', 1, 'USER'],
    ['oper.ator', 'REGULAR', 1, 'OPERATOR'],
  ]) {
    const { createUser } = await ask(
      'mutation ($input: CreateUserInput!) { createUser(input: $input) { user { id } } }',
      {
        input: { name, class: userClass, quotaShare, role },
      },
    );
    if (name === 'noor.haddad')
      await ask('mutation ($input: UpdateQuotaInput!) { updateQuota(input: $input) { user { id } } }', {
        input: {
          userId: createUser.user.id,
          submissionLimit: 400,
          submissionPeriodS: 86_400,
          reason: 'trial account',
        },
      });
    const { createApiKey } = await ask(
      'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret } }',
      {
        input: { userId: createUser.user.id, name: 'workstation' },
      },
    );
    keys[name] = createApiKey.secret;
  }
  for (const [name, sizeMb, replicas] of [
    ['era5-2024', 1_450_000, ['cluster-1', 'cluster-3']],
    ['cmip6-historical', 3_800_000, ['cluster-2']],
    ['uniprot-2025-04', 310_000, ['cluster-1', 'cluster-2', 'cluster-4']],
    ['gaia-dr3-subset', 640_000, ['cluster-3']],
    ['reference-genome-hg38', 3_200, ['cluster-1', 'cluster-2', 'cluster-3', 'cluster-4', 'local']],
    ['lattice-configurations', 92_000, ['cluster-4']],
  ]) {
    await ask('mutation ($input: DatasetInput!) { createDataset(input: $input) { dataset { id } } }', {
      input: { name, sizeMb, replicaSiteIds: replicas.map(siteOf) },
    });
  }
  const links = [];
  for (const [i, from] of sites.entries()) {
    for (const [j, to] of sites.entries()) {
      if (i !== j && (i + j) % 6 !== 5)
        links.push({
          fromSiteId: from.id,
          toSiteId: to.id,
          bandwidthMbPerS: [1180, 940, 610, 118, 412, 96, 830][(i * 3 + j * 5) % 7],
          rttS: [0.004, 0.009, 0.012, 0.021, 0.031][(i + j) % 5],
          loss: 0,
        });
    }
  }
  await ask(
    'mutation ($links: [LinkInput!]!) { setLinkValues(input: { links: $links }) { links { bandwidthMbPerS } } }',
    { links },
  );

  const submit = async (who, jobs) =>
    (
      await ask(
        'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds errors { message } } }',
        { jobs },
        keys[who],
      )
    ).submitJobs;
  const applications = [
    ['amara.okafor', 'climate', 24, 900, 0.32],
    ['lukas.brandt', 'lattice-qcd', 16, 1400, 0.06],
    ['mei.tanaka', 'align-reads', 8, 500, 0.61],
    ['noor.haddad', 'render', 4, 300, 0.12],
  ];
  const random = sequence(7);
  for (const [who, application, cpus, seconds, io] of applications) {
    const jobs = Array.from({ length: 40 }, (_, i) => {
      const estimateS = Math.round(seconds * (0.6 + random()) * 100) / 10;
      const runS = estimateS * (0.5 + random() * 0.5);
      return {
        command: `/opt/${application}/bin/${application}`,
        arguments: ['--case', String(i + 1)],
        name: `${application}-${i + 1}`,
        application,
        groupName: `${application}-may`,
        cpusPerTask: Math.max(1, Math.round(cpus * (0.5 + random() * 0.5))),
        memoryMbPerTask: cpus * 1000,
        estimateS,
        simulatedRunS: runS,
        simulatedIoS: runS * Math.min(0.9, Math.max(0, io + (random() - 0.5) * 0.25)),
        ...(i % 9 === 4 ? { runTimeLimitS: Math.max(0.5, runS * 0.05) } : {}),
        ...SIMULATED,
      };
    });
    await submit(who, jobs);
  }
  await submit('lukas.brandt', [
    {
      command: 'sh',
      arguments: [
        '-c',
        'echo "lattice 32^3 x 64, beta 6.0"; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "sweep $i: plaquette 0.59371$i, acceptance 0.8$i"; sleep 0.3; done; echo "warning: slow convergence" >&2; echo done',
      ],
      name: 'thermalize',
      application: 'lattice-qcd',
      estimateS: 8,
      os: process.platform,
    },
  ]);
  await submit('amara.okafor', [
    {
      command: 'sh',
      arguments: [
        '-c',
        'echo "rank $RANK of $WORLD_SIZE: subdomain $((RANK * 64)) to $((RANK * 64 + 63))"; mkdir out; echo "mass,1.00000$RANK" > out/budget.csv; [ "$RANK" = 0 ] || { echo "negative layer thickness at step 1204" >&2; exit 4; }; sleep 30',
      ],
      name: 'ocean-spinup',
      application: 'ocean',
      tasks: 2,
      estimateS: 40,
      onTaskFailure: 'CONTINUE',
      outputs: [{ path: 'out/*.csv' }],
      os: process.platform,
    },
  ]);
  await submit('mei.tanaka', [
    {
      command: 'sh',
      arguments: ['-c', 'echo "reading reads.fastq"; echo "reads.fastq: No such file" >&2; exit 3'],
      name: 'align-sample-7',
      application: 'align-reads',
      estimateS: 30,
      os: process.platform,
    },
    {
      command: 'bwa-mem3',
      arguments: ['index', 'hg38.fa'],
      application: 'align-reads',
      estimateS: 60,
      os: process.platform,
    },
  ]);
  await ask(
    'mutation ($input: SubmitJobGroupInput!) { submitJobGroup(input: $input) { jobGroup { id } errors { message } } }',
    {
      input: {
        name: 'ensemble-2025-05',
        count: 300,
        template: {
          command: '/opt/climate/bin/climate',
          arguments: ['--member', '{index}'],
          application: 'climate',
          cpusPerTask: 6,
          estimateS: 90,
          simulatedRunS: 70,
          simulatedIoS: 24,
          ...SIMULATED,
        },
      },
    },
    keys['amara.okafor'],
  );
  await submit('mei.tanaka', [
    {
      command: '/opt/assembly/bin/assemble',
      name: 'assembly-large',
      application: 'assembly',
      tasks: 24,
      cpusPerTask: 24,
      memoryMbPerTask: 64_000,
      estimateS: 300,
      ...SIMULATED,
    },
  ]);
  const after = (...refs) => [{ of: refs.map((ref) => ({ ref })) }];
  const step = (name, estimateS, ...before) => ({
    command: `/opt/ocean/bin/${name}`,
    name,
    ref: name,
    application: 'ocean',
    groupName: 'hindcast-1993',
    cpusPerTask: 8,
    estimateS,
    ...(before.length ? { needs: after(...before) } : {}),
    ...SIMULATED,
  });
  await submit('amara.okafor', [
    step('forcing', 30),
    step('bathymetry', 20),
    step('spin-up', 200, 'forcing', 'bathymetry'),
    ...[1, 2, 3, 4].map((member) => step(`member-${member}`, 900 + 60 * member, 'spin-up')),
    step('statistics', 120, 'member-1', 'member-2', 'member-3', 'member-4'),
    step('maps', 60, 'statistics'),
    step('archive', 40, 'statistics'),
  ]);
  const held = await submit('noor.haddad', [
    {
      command: '/opt/render/bin/render',
      name: 'render-final',
      application: 'render',
      cpusPerTask: 4,
      estimateS: 60,
      held: true,
      ...SIMULATED,
    },
  ]);
  void held;
  const { sites: withMachines } = await ask('{ sites { nodes { id name machines { id name } } } }');
  const machines = withMachines.nodes.find((site) => site.name === 'cluster-3').machines;
  await ask('mutation ($machine: ID!) { drainMachine(input: { machineId: $machine }) { machine { id } } }', {
    machine: machines[4].id,
  });

  const inDays = (days) =>
    new Date(Math.ceil(Date.now() / 3_600_000) * 3_600_000 + days * 86_400_000).toISOString();
  const calendar = withMachines.nodes.find((site) => site.name === 'cluster-2');
  const hold = (input) =>
    ask('mutation ($input: CreateHoldInput!) { createHold(input: $input) { hold { id } } }', {
      input: { siteId: calendar.id, onConflict: 'AFTER_JOBS', ...input },
    });
  await hold({
    kind: 'MAINTENANCE',
    name: 'cooling',
    reason: 'new pumps',
    machineIds: calendar.machines.slice(0, 2).map(({ id }) => id),
    from: inDays(9),
    to: inDays(10),
  });
  await hold({ name: 'workshop', tasks: 2, cpus: 8, users: ['mei.tanaka'], from: inDays(3), to: inDays(5) });

  await sleep(warmupS * 1000);
  const { policy } = await ask('{ policy { version document } }');
  await ask(
    'mutation ($input: UpdateWeightsInput!) { updateWeights(input: $input) { policy { version } } }',
    {
      input: {
        expectedVersion: policy.version,
        dispatch: { deadline: 1.5 },
        reason: 'Deadlines of the ensemble were missed last week',
      },
    },
  );
  const end = new Date().toISOString();
  const from = new Date(Date.now() - 3_600_000).toISOString();
  for (const [dispatch, reason] of [
    [{ kind: 'queues', order: 'SJF', queueLimit: 0, ageBoundS: 86_400 }, 'Shortest first at the root'],
    [{ kind: 'job-ratio', queueLimit: 100 }, 'Job ratio'],
    [{ kind: 'round-robin' }, 'Round robin, for comparison'],
  ]) {
    await ask(
      'mutation ($input: CreateSimulationInput!) { createSimulation(input: $input) { simulation { id } } }',
      {
        input: { candidate: { ...policy.document, dispatch }, from, to: end, reason, acceptDistance: true },
      },
    );
  }
  for (let i = 0; i < 60; i++) {
    const { simulations } = await ask('{ simulations { nodes { state } } }');
    if (simulations.nodes.every(({ state }) => state === 'DONE' || state === 'FAILED')) break;
    await sleep(1000);
  }
  return keys;
}

async function find(ask, siteOf) {
  const first = async (filter) =>
    (await ask('query ($filter: JobFilter) { jobs(filter: $filter, last: 1) { nodes { id } } }', { filter }))
      .jobs.nodes[0]?.id;
  const all = await ask(`{
    jobGroups(first: 1) { nodes { id } }
    simulations(first: 1) { nodes { id } }
    users { nodes { id name } }
    output: jobs(filter: { application: "lattice-qcd", states: [COMPLETED] }, first: 500) { nodes { id name } }
    failed: jobs(filter: { application: "align-reads", states: [FAILED] }, first: 500) { nodes { id name } }
    tasks: jobs(filter: { application: "ocean" }, first: 1) { nodes { id } }
  }`);
  return {
    group: all.jobGroups.nodes[0]?.id,
    simulation: all.simulations.nodes[0]?.id,
    user: all.users.nodes.find(({ name }) => name === 'noor.haddad')?.id,
    site: siteOf('cluster-4'),
    calendar: siteOf('cluster-2'),
    output: all.output.nodes.find(({ name }) => name === 'thermalize')?.id,
    failed: all.failed.nodes.find(({ name }) => name === 'align-sample-7')?.id,
    tasks: all.tasks.nodes[0]?.id,
    ended: await first({ application: 'climate', states: ['COMPLETED'] }),
    // Asked for when its picture is taken: one that waits now runs by then. A user's own, if there is one.
    waiting: async () =>
      (await first({ application: 'climate', states: ['DISPATCHED'] })) ??
      (await first({ states: ['DISPATCHED'] })) ??
      first({ states: ['QUEUED'] }),
  };
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The same numbers for the same seed, 0 to 1. */
function sequence(seed) {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}
