/** The settings of Temporal: an unusable one stops the start by name, and no message repeats a secret. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'vitest';
import { readSettings } from '../../../apps/server/settings.ts';
import { faultsIn } from '../../support/settings-faults.ts';
import { tempDir } from '../../support/temp-dir.ts';

type Environment = Readonly<Record<string, string>>;
const CHOSEN = { STRATA_WORKFLOWS: 'temporal', STRATA_TEMPORAL_ADDRESS: 'temporal:7233' };

const read = (environment: Environment, folder = '/tmp') => readSettings(environment, folder).temporal;

const faultsOf = (environment: Environment) => faultsIn(() => read(environment));

describe('the settings of Temporal', () => {
  test('choose the embedded engine unless Temporal is chosen with its address', () => {
    assert.equal(read({}), null);
    assert.equal(read({ STRATA_WORKFLOWS: 'embedded', STRATA_TEMPORAL_ADDRESS: 'temporal:7233' }), null);
    assert.deepEqual(read(CHOSEN), { address: 'temporal:7233', namespace: 'default', tls: null, apiKey: null });
    assert.equal(read({ ...CHOSEN, STRATA_TEMPORAL_NAMESPACE: 'strata.a1b2c' })?.namespace, 'strata.a1b2c');
    assert.match(faultsOf({ STRATA_WORKFLOWS: 'cadence' }), /STRATA_WORKFLOWS is "cadence": expected one of embedded,/);
  });

  test('take any host and port, and refuse an address without them by name', () => {
    for (const address of ['127.0.0.1:7233', '[::1]:7233', 'ns.a1b2c.tmprl.cloud:7233', 'a:1', 'host_1:65535']) {
      assert.equal(read({ ...CHOSEN, STRATA_TEMPORAL_ADDRESS: address })?.address, address);
    }
    const missing = faultsOf({ STRATA_WORKFLOWS: 'temporal' });
    assert.match(missing, /STRATA_TEMPORAL_ADDRESS is not set: expected the frontend's host and port/);
    const refused = ['temporal', 'temporal:', ':7233', 'temporal:0', 'temporal:65536', '::1:7233', 'a b:7233'];
    for (const address of [...refused, 'http://temporal:7233', 'temporal:7233/', '-a:1', 'a-:1']) {
      const fault = faultsOf({ ...CHOSEN, STRATA_TEMPORAL_ADDRESS: address });
      assert.ok(fault.includes(`STRATA_TEMPORAL_ADDRESS is ${JSON.stringify(address)}: expected`), fault);
    }
    assert.match(faultsOf({ STRATA_TEMPORAL_ADDRESS: 'temporal' }), /STRATA_TEMPORAL_ADDRESS is "temporal"/);
    assert.match(faultsOf({ ...CHOSEN, STRATA_TEMPORAL_NAMESPACE: 'a b' }), /STRATA_TEMPORAL_NAMESPACE is "a b"/);
  });

  test('never print a possible secret', () => {
    const withUser = faultsOf({ ...CHOSEN, STRATA_TEMPORAL_ADDRESS: 'ada:hunter2@temporal:7233' });
    assert.match(withUser, /STRATA_TEMPORAL_ADDRESS is set, but with something before an @/);
    assert.doesNotMatch(withUser, /hunter2/);
    const broken = faultsOf({ ...CHOSEN, STRATA_TEMPORAL_API_KEY: 'hunter2\nX-Other: 1' });
    assert.match(broken, /STRATA_TEMPORAL_API_KEY is set, but no key/);
    assert.doesNotMatch(broken, /hunter2/);
  });

  test('send an API key over TLS only', () => {
    const keyed = { ...CHOSEN, STRATA_TEMPORAL_API_KEY: 'key' };
    assert.deepEqual(read(keyed)?.tls, { ca: null, client: null });
    assert.equal(read(keyed)?.apiKey, 'key');
    assert.deepEqual(read({ ...CHOSEN, STRATA_TEMPORAL_TLS: 'true' })?.tls, { ca: null, client: null });
    assert.match(faultsOf({ ...keyed, STRATA_TEMPORAL_TLS: 'false' }), /STRATA_TEMPORAL_TLS is "false": expected true/);
  });

  test('read certificates, which imply TLS, and require a client certificate and its key together', async (context) => {
    const folder = await tempDir(context);
    for (const name of ['ca', 'cert', 'key']) await writeFile(path.join(folder, name), name);
    const ca = { ...CHOSEN, STRATA_TEMPORAL_TLS_CA: 'ca' };
    assert.deepEqual(read(ca, folder)?.tls, { ca: Buffer.from('ca'), client: null });
    const cert = { ...ca, STRATA_TEMPORAL_TLS_CERT: path.join(folder, 'cert') };
    assert.match(
      faultsOf({ ...cert, STRATA_TEMPORAL_TLS_CA: '' }),
      /STRATA_TEMPORAL_TLS_KEY is not set: expected both it/,
    );
    assert.deepEqual(read({ ...cert, STRATA_TEMPORAL_TLS_KEY: 'key' }, folder)?.tls, {
      ca: Buffer.from('ca'),
      client: { cert: Buffer.from('cert'), key: Buffer.from('key') },
    });
    assert.match(faultsOf({ ...CHOSEN, STRATA_TEMPORAL_TLS_CA: '/none' }), /STRATA_TEMPORAL_TLS_CA is "\/none"/);
  });
});
