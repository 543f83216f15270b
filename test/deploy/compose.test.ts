/** Tests deploy/compose.yaml: its settings exist, its secrets are required, and its services fit together. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, test } from 'vitest';
import { parse } from 'yaml';
import { readSettings } from '../../apps/server/settings.ts';
import { SettingsError } from '../../apps/server/settings-reader.ts';
import { ROOT } from '../architecture/source-tree.ts';
import { tempDir } from '../support/temp-dir.ts';
import { parseDockerfile } from './dockerfile.ts';
import { knownSettings, settingsNamed } from './known-settings.ts';

const DEPLOY = path.join(ROOT, 'deploy');
const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');

interface Service {
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly networks: readonly string[] | Readonly<Record<string, { readonly ipv4_address?: string }>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly image?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly restart?: string;
  readonly logging?: { readonly options: Readonly<Record<string, string>> };
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
  readonly networks: Readonly<Record<string, unknown>>;
}

const compose = parse(read('deploy/compose.yaml'), { merge: true }) as Compose;
const services = Object.entries(compose.services);
const nodes = services.filter(([, { build }]) => build !== undefined);

/** Every value without a default, as an operator would set it. */
const GIVEN: Readonly<Record<string, string>> = {
  STRATA_BASE_URL: 'https://git.example.org',
  STRATA_MASTER_KEY: 'ab'.repeat(32),
  POSTGRES_PASSWORD: 'cd'.repeat(24),
  POSTGRES_SERVER_PASSWORD: 'dc'.repeat(24),
  TEMPORAL_POSTGRES_PASSWORD: 'ef'.repeat(24),
};

/** A service that does its work and exits; its dependents wait for that. */
const ENDS = 'temporal-schema';

/**
 * Substitutes `${NAME:?message}` and `${NAME:-default}` as Compose does. Throws for a required value that is missing.
 */
function filledIn(value: string, given: Readonly<Record<string, string>>): string {
  return value.replaceAll(/\$\{(\w+)(:\?|:-)([^}]*)\}/g, (_all, name: string, operator: string, words: string) => {
    const found = given[name] ?? '';
    if (found !== '') return found;
    if (operator === ':-') return words;
    throw new TypeError(`${name}: ${words}`);
  });
}

function environmentOf(service: Service, given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(service.environment ?? {});
  return Object.fromEntries(entries.map(([name, value]) => [name, filledIn(value, given)]));
}

describe('deploy/compose.yaml', () => {
  test('holds the log, the database, Temporal with a database of its own, two nodes and a proxy in front of them', () => {
    const temporal = ['temporal', 'temporal-namespace', 'temporal-postgres', 'temporal-schema'];
    const names = ['eventstore', 'node-1', 'node-2', 'postgres', 'proxy', ...temporal];
    assert.deepEqual(services.map(([name]) => name).sort(), names);
    assert.equal(nodes.length, 2);
  });

  test('pins the version of every image, and runs tools and their server in one version', () => {
    for (const [name, { image = '', build }] of services) {
      if (build === undefined) assert.match(image, /:\d/, name);
    }
    const tagOf = (name: string): string | undefined => compose.services[name]?.image?.split(':')[1];
    for (const name of ['temporal-schema', 'temporal-namespace']) assert.equal(tagOf(name), tagOf('temporal'));
  });

  test('gives each node settings that exist and that the server accepts', () => {
    const known = knownSettings();
    for (const [name, service] of nodes) {
      const environment = environmentOf(service, GIVEN);
      assert.deepEqual(
        Object.keys(environment).filter((setting) => !known.has(setting)),
        [],
        name,
      );
      const settings = readSettings(environment, '/');
      const { baseUrl, eventStoreDb, temporal } = settings;
      assert.equal(baseUrl, 'https://git.example.org');
      assert.equal(eventStoreDb?.address, 'esdb://eventstore:2113?tls=false');
      assert.deepEqual(temporal, { address: 'temporal:7233', namespace: 'strata', tls: null, apiKey: null });
    }
  });

  test('passes on every setting of the README but those of the image, with its default', async () => {
    const listed = settingsNamed(read('README.md').split('\n## Settings\n')[1]?.split('\n## ')[0] ?? '');
    assert.ok(listed.length > 40);
    const { env } = parseDockerfile(read('deploy/Dockerfile'));
    for (const [name, service] of nodes) {
      const environment = environmentOf(service, GIVEN);
      const left = listed.filter((setting) => !(setting in environment) && !(setting in env));
      assert.deepEqual(left, [], name);
      const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
      assert.deepEqual(readSettings(environment, '/'), readSettings(given, '/'), 'an empty text is no setting');
    }
  });

  test('bounds what each container may print', () => {
    for (const [name, { logging }] of services) {
      assert.match(logging?.options['max-size'] ?? '', /^\d+m$/, name);
      assert.match(logging?.options['max-file'] ?? '', /^\d+$/, name);
    }
  });

  test('makes the role that serves by the statements of the documentation', async (context) => {
    const folder = await tempDir(context);
    // Stands in for psql, which no package of the project has.
    await writeFile(path.join(folder, 'psql'), '#!/bin/sh\ncat\n', { mode: 0o755 });
    const run = (password: string) =>
      promisify(execFile)('sh', [path.join(DEPLOY, 'postgres-roles.sh')], {
        env: {
          ...{ PATH: `${folder}:${process.env['PATH'] ?? ''}`, POSTGRES_USER: 'strata', POSTGRES_DB: 'strata' },
          POSTGRES_SERVER_PASSWORD: password,
        },
      });
    const { stdout } = await run('dc12');
    const statements = stdout.replaceAll('"', '').trim().split('\n');
    assert.equal(statements.length, 2);
    for (const statement of statements) {
      assert.ok(read('docs/operating.md').includes(`    ${statement.replace("'dc12'", "'...'")}\n`), statement);
    }
    await assert.rejects(run("x'; DROP TABLE events; --"), /letters and digits only/);
  });

  test('stores layers in the bucket that is named, and not without its keys', () => {
    const bucket = {
      ...{ STRATA_STORAGE: 's3', STRATA_S3_ENDPOINT: 'https://s3.example.org', STRATA_S3_REGION: 'eu-central-1' },
      ...{ STRATA_S3_BUCKET: 'layers', STRATA_S3_PREFIX: 'git', STRATA_S3_PATH_STYLE: 'false' },
    };
    const keys = { STRATA_S3_ACCESS_KEY_ID: 'AKIA1', STRATA_S3_SECRET_ACCESS_KEY: 'hunter2' };
    for (const [, service] of nodes) {
      assert.equal(readSettings(environmentOf(service, GIVEN), '/').layerStore.kind, 'filesystem');
      assert.deepEqual(readSettings(environmentOf(service, { ...GIVEN, ...bucket, ...keys }), '/').layerStore, {
        kind: 's3',
        ...{ endpointUrl: 'https://s3.example.org', region: 'eu-central-1', bucket: 'layers', prefix: 'git/' },
        ...{ pathStyle: false, accessKeyId: 'AKIA1', secretAccessKey: 'hunter2' },
      });
      const without = environmentOf(service, { ...GIVEN, ...bucket });
      assert.throws(() => readSettings(without, '/'), /STRATA_S3_SECRET_ACCESS_KEY is not set/);
    }
  });

  test('creates the namespace, at the address, that the nodes are configured with', () => {
    const { environment = {}, healthcheck } = compose.services['temporal-namespace'] ?? assert.fail();
    for (const [, node] of nodes) {
      assert.equal(node.environment?.['STRATA_TEMPORAL_ADDRESS'], environment['TEMPORAL_ADDRESS']);
      assert.equal(node.environment?.['STRATA_TEMPORAL_NAMESPACE'], environment['TEMPORAL_NAMESPACE']);
    }
    assert.equal(healthcheck?.test.at(-1), environment['TEMPORAL_NAMESPACE']);
  });

  test('starts nothing without its secrets, and has no default for any of them', () => {
    for (const name of Object.keys(GIVEN)) {
      const rest = { ...GIVEN, [name]: '' };
      const refused = services.filter(([, service]) => {
        try {
          environmentOf(service, rest);
          return false;
        } catch (error) {
          return error instanceof TypeError && error.message.startsWith(`${name}: `);
        }
      });
      const uses = services.filter(([, service]) => JSON.stringify(service.environment ?? {}).includes(`{${name}:?`));
      assert.deepEqual(refused, uses, name);
      assert.ok(uses.length > 1, name);
    }
    for (const [name, service] of services) {
      for (const [variable, value] of Object.entries(service.environment ?? {})) {
        if (!/PASSWORD|PWD|KEY|SECRET|TOKEN|DATABASE_URL/.test(variable)) continue;
        // Those of a bucket are needed only with one, a new master key only while it replaces the other, and a
        // certificate or a key of Temporal only where TLS is asked for.
        if (/^STRATA_(S3|TLS|TEMPORAL)_|^STRATA_MASTER_KEY_NEW$/.test(variable)) {
          assert.equal(value, `\${${variable}:-}`, name);
          continue;
        }
        assert.match(value, /\$\{\w+:\?/, `${name} ${variable}`);
        assert.throws(() => filledIn(value, {}), TypeError);
      }
    }
  });

  test('gives each node a data directory of its own, and both one folder of layers', () => {
    const mounted = nodes.map(([, { volumes = [] }]) =>
      Object.fromEntries(volumes.map((volume) => volume.split(':').reverse() as [string, string])),
    );
    const [data, layers] = ['/var/lib/strata/data', '/var/lib/strata/layers'];
    assert.deepEqual(
      mounted.map((volumes) => volumes[layers]),
      ['layers', 'layers'],
    );
    assert.equal(new Set(mounted.map((volumes) => volumes[data])).size, nodes.length);
  });

  test('checks the health of every service, and starts dependents when it is healthy', () => {
    for (const [name, { healthcheck, build, restart, depends_on = {} }] of services) {
      // The image of the nodes has a health check of its own.
      if (build === undefined && name !== ENDS) assert.equal(healthcheck?.test[0], 'CMD', name);
      assert.equal(restart, name === ENDS ? 'on-failure' : 'unless-stopped', name);
      for (const [other, { condition }] of Object.entries(depends_on)) {
        assert.ok(other in compose.services, other);
        assert.equal(condition, other === ENDS ? 'service_completed_successfully' : 'service_healthy');
      }
    }
    // The nodes start without waiting for Temporal.
    for (const [, node] of nodes) assert.deepEqual(Object.keys(node.depends_on ?? {}), ['eventstore', 'postgres']);
  });

  test('names only volumes, networks and files that exist', () => {
    for (const [name, { volumes = [], networks, build }] of services) {
      for (const [source = ''] of volumes.map((volume) => volume.split(':'))) {
        if (source.startsWith('.')) readFileSync(path.join(DEPLOY, source));
        else assert.ok(source in compose.volumes, `${name} ${source}`);
      }
      for (const network of Array.isArray(networks) ? networks : Object.keys(networks)) {
        assert.ok(network in compose.networks, `${name} ${network}`);
      }
      if (build !== undefined) readFileSync(path.join(DEPLOY, build.context, build.dockerfile));
    }
  });

  test('allows access to the databases only for the nodes, and to the nodes only through the proxy', () => {
    assert.deepEqual(compose.networks['back'], { internal: true });
    for (const [name, { ports, networks }] of services) {
      assert.equal(ports !== undefined, name === 'proxy', name);
      if (!['proxy', 'node-1', 'node-2'].includes(name)) assert.deepEqual(networks, ['back'], name);
    }
    // Without TLS in front of it, access tokens pass the proxy unencrypted, so it listens on loopback only.
    assert.match(filledIn(compose.services['proxy']?.ports?.[0] ?? '', {}), /^127\.0\.0\.1:/);
  });

  test('has a proxy that rotates among the nodes, which trust only that proxy', () => {
    const servers = [...read('deploy/proxy.conf').matchAll(/^ {2}server ([\w-]+):8080 /gm)].map(([, name]) => name);
    assert.deepEqual(
      servers,
      nodes.map(([name]) => name),
    );
    const { networks } = compose.services['proxy'] ?? { networks: {} };
    const [front]: readonly { readonly ipv4_address?: string }[] = Object.values(networks);
    for (const [, node] of nodes) assert.equal(node.environment?.['STRATA_TRUSTED_PROXIES'], front?.ipv4_address);
  });

  test('the proxy, which the nodes trust, passes on nothing that they would believe of a client', () => {
    const replaced = [...read('deploy/proxy.conf').matchAll(/^ {2}proxy_set_header ([\w-]+) (\S+);$/gm)];
    const values = new Map(replaced.map(([, name, value]) => [name, value]));
    assert.equal(values.get('X-Forwarded-For'), '$remote_addr');
    for (const name of ['traceparent', 'tracestate']) assert.equal(values.get(name), '""', name);
  });
});

test('the operating documentation names only settings that exist', () => {
  const known = knownSettings();
  const deployed = readdirSync(DEPLOY).filter((name) => name !== '.env');
  for (const file of ['docs/operating.md', ...deployed.map((name) => `deploy/${name}`)]) {
    assert.deepEqual(
      settingsNamed(read(file)).filter((name) => !known.has(name)),
      [],
      file,
    );
  }
  assert.ok(!known.has('STRATA_MASTERKEY') && settingsNamed('`STRATA_MASTERKEY`=1')[0] === 'STRATA_MASTERKEY');
  assert.throws(() => readSettings({ STRATA_MASTER_KEY: 'changeit' }, '/'), SettingsError);
});
