import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { describeWithRedis } from '../support/redis.js';

describeWithRedis('the Redis of the tests', (redis) => {
  test('keeps what it acknowledged over a kill and a restart on the same port', async () => {
    const { url } = redis();
    const client = new Redis(url, { maxRetriesPerRequest: null });
    client.on('error', () => {});
    await client.config('SET', 'appendfsync', 'always');
    await client.set('answer', '42');
    await redis().restart();
    expect(redis().url).toBe(url);
    expect(await client.get('answer')).toBe('42');
    expect(await client.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction']);
    client.disconnect();
  });
});
