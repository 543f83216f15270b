/** The security of the connection to Temporal, in the SDK's form. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { connectionOptions } from '../../../workflows/temporal/connection-options.ts';

const [ca, cert, key] = ['ca', 'cert', 'key'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];
const address = 'temporal:7233';

test('a connection is unencrypted, and sends no key, unless TLS is set', () => {
  assert.deepEqual(connectionOptions({ address }), { address, tls: null });
  assert.deepEqual(connectionOptions({ address, tls: null, apiKey: 'key' }), { address, tls: null });
});

test("TLS trusts the machine's authorities or a given one, and sends a client certificate if there is one", () => {
  assert.deepEqual(connectionOptions({ address, tls: { ca: null, client: null }, apiKey: 'key' }), {
    ...{ address, apiKey: 'key' },
    tls: {},
  });
  assert.deepEqual(connectionOptions({ address, tls: { ca, client: { cert, key } }, apiKey: null }), {
    address,
    tls: { serverRootCACertificate: ca, clientCertPair: { crt: cert, key } },
  });
});
