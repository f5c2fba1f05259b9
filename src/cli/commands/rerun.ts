/** `switchyard rerun`: what has failed of a group is submitted again. */
import type { Command } from 'commander';
import { addCommand, show } from '../command.js';
import { connect } from '../connect.js';
import { RerunDocument } from '../documents.gql.js';
import { count } from '../format.js';

export function addRerun(program: Command): void {
  const command = addCommand(
    program,
    'rerun <group>',
    'resubmit the failed jobs among your jobs with this --group, or of a bulk group (group_3), and the jobs canceled because of them; each job once',
  ).option('--failed', 'only the failed jobs themselves');
  command.action(async (group: string, { failed }: { failed?: boolean }) => {
    const which = /^group_\d+$/.test(group) ? { jobGroupId: group } : { groupName: group };
    const only = failed ? ('FAILED' as const) : ('FAILED_AND_DOWNSTREAM' as const);
    const { rerunJobs } = await connect().request(RerunDocument, { input: { ...which, only } });
    show(command, rerunJobs, ({ jobIds, repointedJobIds: repointed }) =>
      jobIds.length === 0
        ? 'nothing to rerun'
        : [
            ...jobIds,
            `${count(jobIds.length, 'job')} submitted again${repointed.length === 0 ? '' : `; ${count(repointed.length, 'job')} now ${repointed.length === 1 ? 'waits' : 'wait'} for them`}`,
          ].join('\n'),
    );
  });
}
