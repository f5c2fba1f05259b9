import { isAbsolute } from 'node:path';
import { expect, test } from 'vitest';
import { ALL_VARIABLES, jobEnvironment, loadConfig } from '../../src/platform/config.js';
import { ConfigError } from '../../src/platform/variables.js';

test('with nothing set, every default is accepted', () => {
  const config = loadConfig({});
  expect(config.port).toBe(4000);
  expect(config.databaseUrl).toBeNull();
  expect(config.url).toBe('http://localhost:4000/graphql');
  expect(isAbsolute(config.home)).toBe(true);
  expect(config.limits.jobsMax).toBe(10_000);
});

test('names are unique, and everything is explained', () => {
  const names = ALL_VARIABLES.map((variable) => variable.name);
  expect(new Set(names).size).toBe(names.length);
  for (const variable of ALL_VARIABLES) {
    expect(variable.name).toMatch(/^[A-Z][A-Z_]+$/);
    expect(variable.meaning).toMatch(/\.$/);
    expect(variable.accepted).not.toBe('');
  }
});

test('values are read; an empty one counts as none', () => {
  const config = loadConfig({
    PORT: '0',
    INTROSPECTION: 'false',
    DATABASE_URL: '',
    LIMIT_PAGE: '7',
    SWITCHYARD_HOME: '/x/y',
  });
  expect(config).toMatchObject({
    port: 0,
    introspection: false,
    databaseUrl: null,
    home: '/x/y',
    agentStateDir: '/x/y/agent',
  });
  expect(config.limits.pageMax).toBe(7);
});

test('lists are read one by one, and refused as a whole', () => {
  const { trustedProxies, corsOrigins, oidcRoles } = loadConfig({
    SWITCHYARD_TRUSTED_PROXIES: '10.0.0.0/8, 2001:db8::1',
    SWITCHYARD_CORS_ORIGINS: 'https://a.example,http://b.example:8080',
    SWITCHYARD_OIDC_ROLES: 'cn=grid,ou=x=ADMIN'.replace(',', ';'),
  });
  expect({ trustedProxies, corsOrigins, oidcRoles }).toEqual({
    trustedProxies: ['10.0.0.0/8', '2001:db8::1'],
    corsOrigins: ['https://a.example', 'http://b.example:8080'],
    oidcRoles: ['cn=grid;ou=x=ADMIN'],
  });
  for (const [name, value] of [
    ['SWITCHYARD_TRUSTED_PROXIES', '10.0.0.0/33'],
    ['SWITCHYARD_TRUSTED_PROXIES', '10.0.0.1,proxy'],
    ['SWITCHYARD_CORS_ORIGINS', 'https://a.example/path'],
    ['SWITCHYARD_CORS_ORIGINS', 'a.example'],
    ['SWITCHYARD_OIDC_ROLES', 'staff=AGENT'],
    ['SWITCHYARD_OIDC_ISSUER', 'http://idp.example.org'],
  ] as const) {
    expect(() => loadConfig({ [name]: value })).toThrow(`${name}: ${JSON.stringify(value)} is not accepted`);
  }
});

test('what belongs together is set together', () => {
  expect(() => loadConfig({ SWITCHYARD_TLS_CERT: '/c.pem' })).toThrow(
    'SWITCHYARD_TLS_CERT, SWITCHYARD_TLS_KEY',
  );
  expect(() => loadConfig({ SWITCHYARD_OIDC_ISSUER: 'https://idp.example.org' })).toThrow(
    'SWITCHYARD_OIDC_ISSUER, SWITCHYARD_OIDC_AUDIENCE',
  );
  const { url } = loadConfig({ SWITCHYARD_TLS_CERT: '/c.pem', SWITCHYARD_TLS_KEY: '/k.pem' });
  expect(url).toBe('https://localhost:4000/graphql');
});

test('every bad value is named with what is accepted, and secrets are not shown', () => {
  const load = () =>
    loadConfig({
      PORT: '70000',
      PORTAL: 'yes',
      DATABASE_URL: 'mysql://me:hunter2@db/x',
      LIMIT_PAGE: '-1',
    });
  expect(load).toThrow(ConfigError);
  expect(load).toThrow('PORT: "70000" is not accepted; accepted: a whole number from 0 to 65535');
  expect(load).toThrow('PORTAL: "yes" is not accepted; accepted: true or false');
  expect(load).toThrow('LIMIT_PAGE: "-1" is not accepted; accepted: a whole number from 1 to 100000');
  expect(load).toThrow(
    'DATABASE_URL: (not shown: it is a secret) is not accepted; accepted: postgresql://user:password@host:port/database',
  );
  expect(load).not.toThrow('hunter2');
});

test.each(['1.5', '1e3', ' 5', '0x10', 'NaN', '99999999999999999999'])('%j is no whole number', (text) => {
  expect(() => loadConfig({ PORT: text })).toThrow(/^PORT: /);
});

test('jobs get what all have and what the operator names, and never our secrets', () => {
  const env = {
    DATABASE_URL: 'x',
    SWITCHYARD_KEY: 'k',
    AWS_SECRET_ACCESS_KEY: 's',
    TZ: 'UTC',
    MODULEPATH: '/m',
    EMPTY: '',
  };
  const all = jobEnvironment([], env);
  expect(Object.keys(all).sort()).toEqual(['HOME', 'LANG', 'LOGNAME', 'PATH', 'SHELL', 'USER']);
  expect(all.PATH).toBe('/usr/local/bin:/usr/bin:/bin');
  const named = ['MODULEPATH', 'EMPTY', 'DATABASE_URL', 'SWITCHYARD_KEY', 'NOT_SET'];
  expect(jobEnvironment(named, { ...env, PATH: '/bin' })).toEqual({
    ...all,
    MODULEPATH: '/m',
    EMPTY: '',
  });
});
