/** A client of GA4GH TES that checks all that it sends and is sent against the service's own OpenAPI document. */
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { expect } from 'vitest';
import { parse } from 'yaml';
import { packagePath } from '../../src/platform/paths.js';

/** Where the OpenAPI document looks for the schemas of service-info. */
const SERVICE_INFO =
  'https://raw.githubusercontent.com/ga4gh-discovery/ga4gh-service-info/v1.0.0/service-info.yaml';

export interface Task {
  id: string;
  state: string;
  name?: string;
  inputs?: Record<string, unknown>[];
  executors: Record<string, unknown>[];
  logs: {
    logs: { exit_code: number; stdout?: string; stderr?: string; start_time?: string }[];
    outputs: { url: string; path: string; size_bytes: string }[];
    system_logs?: string[];
    start_time?: string;
    end_time?: string;
  }[];
}

export interface Answer<T> {
  status: number;
  body: T & { errors?: { message: string; extensions: { code: string } }[] };
  headers: Headers;
}

/** `origin`: of the service. */
export async function tesClient(origin: string, key: string) {
  const base = `${origin}/ga4gh/tes/v1`;
  const document = await (await fetch(`${base}/openapi.yaml`)).text();
  expect(document).toBe(readFileSync(packagePath('tes.yaml'), 'utf8'));
  const ajv = new Ajv({ strict: false, validateSchema: false, validateFormats: false, allErrors: true });
  ajv.addSchema(parse(document), 'tes');
  ajv.addSchema(parse(readFileSync(packagePath('test', 'tes', 'service-info.yaml'), 'utf8')), SERVICE_INFO);
  const fits = (schema: string, value: unknown): void => {
    const validate = ajv.compile({ $ref: `tes#/components/schemas/${schema}` });
    expect(validate(value), `${schema}: ${JSON.stringify(validate.errors)} in ${JSON.stringify(value)}`).toBe(
      true,
    );
  };

  async function ask<T>(
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Answer<T>> {
    const response = await fetch(base + path, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return {
      status: response.status,
      body: (await response.json()) as Answer<T>['body'],
      headers: response.headers,
    };
  }

  /** What must be answered as the schema says. */
  async function must<T>(schema: string, ...asked: Parameters<typeof ask>): Promise<T> {
    const { status, body } = await ask<T>(...asked);
    expect([status, body.errors]).toEqual([200, undefined]);
    fits(schema, body);
    return body;
  }

  const self = {
    ask,
    async create(task: object): Promise<string> {
      fits('tesTask', task);
      return (await must<{ id: string }>('tesCreateTaskResponse', 'POST', '/tasks', { body: task })).id;
    },
    get: (id: string, view = 'MINIMAL') => must<Task>('tesTask', 'GET', `/tasks/${id}?view=${view}`),
    /** MINIMAL leaves out what the schema demands of a task. */
    async state(id: string): Promise<string> {
      const { body } = await ask<Task>('GET', `/tasks/${id}`);
      expect(Object.keys(body)).toEqual(['id', 'state']);
      fits('tesState', body.state);
      return body.state;
    },
    list: (query = '') =>
      must<{ tasks: Task[]; next_page_token?: string }>(
        // The view MINIMAL leaves out what the schema demands of a task.
        query.includes('view=') ? 'tesListTasksResponse' : 'tesCancelTaskResponse',
        'GET',
        `/tasks?${query}`,
      ),
    cancel: (id: string) => must('tesCancelTaskResponse', 'POST', `/tasks/${id}:cancel`),
    info: () => must<Record<string, unknown>>('tesServiceInfo', 'GET', '/service-info'),
    /** What a task is refused with: its status and message. */
    async refused(task: unknown): Promise<[number, string | undefined]> {
      const { status, body } = await ask('POST', '/tasks', { body: task });
      return [status, body.errors?.[0]?.message];
    },
    /** The end of a task, in the view FULL. */
    async ended(id: string): Promise<Task> {
      const over = ['COMPLETE', 'EXECUTOR_ERROR', 'SYSTEM_ERROR', 'CANCELED'];
      while (!over.includes(await self.state(id))) await new Promise((resolve) => setTimeout(resolve, 200));
      return self.get(id, 'FULL');
    },
  };
  return self;
}
