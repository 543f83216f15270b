/** A renewed TLS certificate is taken without a restart. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import path from 'node:path';
import { connect } from 'node:tls';
import { type TestContext, test } from 'vitest';
import { createTlsRenewal } from '../../../apps/server/tls-renewal.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { keepLog } from '../../support/log.ts';
import { selfSignedCertificate } from '../../support/self-signed-certificate.ts';
import { tempDir } from '../../support/temp-dir.ts';

async function serve(context: TestContext) {
  const folder = await tempDir(context);
  const [certFile, keyFile] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')];
  const first = selfSignedCertificate();
  const write = async ({ cert, key }: { readonly cert?: string; readonly key?: string }): Promise<void> => {
    if (cert !== undefined) await writeFile(certFile, cert);
    if (key !== undefined) await writeFile(keyFile, key);
  };
  await write(first);
  const server = createServer(first, (_request, response) => response.end('answered'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp(context, () => void server.close());
  const log = keepLog();
  const tls = { cert: Buffer.from(first.cert), key: Buffer.from(first.key), certFile, keyFile };
  const { look, expiresAtMs } = createTlsRenewal({ server, tls, log });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('The server has no port');
  /** The fingerprint of the certificate that a new connection gets. */
  const served = async (): Promise<string | undefined> => {
    const socket = connect({ port: address.port, host: '127.0.0.1', rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const certificate = socket.getPeerX509Certificate();
    socket.destroy();
    return certificate?.fingerprint256;
  };
  const messages = () => log.lines.map(({ level }) => level);
  return { first, certFile, write, look, expiresAtMs, served, messages };
}

const printOf = ({ cert }: { readonly cert: string }): string => new X509Certificate(cert).fingerprint256;

test('New connections get the renewed certificate', async (context) => {
  const { first, write, look, expiresAtMs, served, messages } = await serve(context);
  await look();
  assert.deepEqual([await served(), messages()], [printOf(first), []]);
  const expiryOf = ({ cert }: { readonly cert: string }) => Date.parse(new X509Certificate(cert).validTo);
  assert.equal(expiresAtMs(), expiryOf(first));
  const second = selfSignedCertificate();
  await write(second);
  await look();
  await look();
  assert.deepEqual([await served(), messages()], [printOf(second), ['info']]);
});

test('A pair that cannot be used leaves the old one, is logged once, and may become whole', async (context) => {
  const { first, certFile, write, look, served, messages } = await serve(context);
  const second = selfSignedCertificate();
  for (const broken of [{ cert: second.cert }, { cert: 'no certificate' }, { cert: first.cert, key: '' }]) {
    await write(broken);
    await look();
    await look();
    assert.equal(await served(), printOf(first));
  }
  await rm(certFile);
  await look();
  await look();
  assert.deepEqual([await served(), messages()], [printOf(first), ['error', 'error', 'error', 'error']]);
  await write(second);
  await look();
  assert.deepEqual([await served(), messages().at(-1)], [printOf(second), 'info']);
});
