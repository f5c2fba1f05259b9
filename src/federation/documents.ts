/** What a service asks of its peers: all that there is in the protocol (PROTOCOL.md). */

const exchange = (
  more: string,
) => `mutation Exchange($input: ExchangeInput!) { exchangeJobs(input: $input) { service site cursor more
  offers { offer state stop job boost request { request hops visited user bytes name application arrayIndex tasks cpusPerTask memoryMbPerTask
    licenses os architecture estimateS benchmark runTimeLimitS deadline sandboxMb outputMb computationShare
    preferences { os architecture licenses cpusPerTask memoryMbPerTask } simulatedRunS simulatedIoS launch onTaskFailure ${more}} } } }`;
export const EXCHANGE = exchange('outputs ');
/** Of version 1. */
export const EXCHANGE_BEFORE = exchange('');

export const KEEP = `mutation Keep($site: ID!, $job: ID!, $epoch: Int!, $task: Int!, $files: [RunFileInput!]!) {
  keepFiles(site: $site, job: $job, epoch: $epoch, task: $task, files: $files) { id receivedBytes } }`;

export const CLAIM = `mutation Claim($offers: [ID!]!) { claimJobs(offers: $offers) {
  results { outcome epoch command arguments environment workingDirectory
    inputs { place dataset name sizeMb sha256 urls } } } }`;

export const RETURN = `mutation Return($offers: [ID!]!) { returnJobs(offers: $offers) }`;

export const REPORT = `mutation Report($site: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, reports: $reports) { results } }`;

export const DOCUMENTS: readonly string[] = [EXCHANGE, EXCHANGE_BEFORE, CLAIM, RETURN, KEEP, REPORT];
