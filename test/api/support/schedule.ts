/** One round of every scheduler, as the engine does it: what the API's tests need of it, at the moment they choose. */

import type { ApiParts } from '../../../src/api/server.js';
import { dispatchCycle, imageOf, siteCycle } from '../../../src/core/index.js';
import { Mirror } from '../../../src/store/mirror.js';

export async function schedule({ store }: Pick<ApiParts, 'store'>): Promise<void> {
  const mirror = new Mirror(store, { reservations: true });
  await mirror.sync();
  const now = Date.now() / 1000;
  const { version: policyVersion, document: policy } = mirror.policy;
  const context = { policyVersion, cycle: 'test', now };
  const { moves } = dispatchCycle(mirror.grid, { now, policy, policyVersion, maxMoves: 10_000 });
  await store.applyMoves(moves, context);
  await mirror.sync();
  for (const { site } of mirror.grid.sites) {
    const plan = siteCycle(mirror.grid, site.id, { now, policy, policyVersion, maxStarts: 10_000 });
    const { revision } = await store.promises(site.id);
    const image = imageOf(plan.memory);
    const promises = image && { revision, promises: image };
    await store.applyStarts(site.id, plan.starts, plan.reservation, context, promises);
  }
}
