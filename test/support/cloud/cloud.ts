/**
 * A cloud that truly checks identity tokens: versitygw as IAM, STS and S3. Its token service takes only issuers with
 * https at a public address, so it runs in a network where the test's issuer has one.
 */
import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import path from 'node:path';
import { IAMClient } from '@aws-sdk/client-iam';
import { S3Client } from '@aws-sdk/client-s3';
import type { RoleCredentials } from '../../../core/ports/buckets.ts';
import { createAuthority } from '../certificates.ts';
import { cleanUp, type Ending } from '../cleanup.ts';
import { startTcpProxy } from '../tcp-proxy.ts';
import { tempDir } from '../temp-dir.ts';
import { findTool } from '../tools.ts';
import { inOwnNetwork, PUBLIC_ADDRESS } from './network.ts';

const OWNER = { accessKeyId: 'AKIATESTSERVER000001', secretAccessKey: 'secret-of-the-test-server-0123456789abcd' };
const REGION = 'us-east-1';

export interface Cloud {
  /** By which the cloud knows the authority of the issuer's certificate. */
  readonly thumbprint: string;
  /** The token service, as this process reaches it. */
  readonly stsUrl: string;
  /** With the rights of the cloud's owner. */
  readonly iam: IAMClient;
  /** A client with these credentials; with those of the cloud's owner for null. */
  s3(credentials: RoleCredentials | null): S3Client;
  /** Lets all sessions of roles end now. */
  endSessions(): Promise<void>;
}

/** Starts the cloud, which ends with the test. `issuer` answers what the cloud asks the issuer for. */
export async function startCloud(ending: Ending, issuer: RequestListener): Promise<Cloud> {
  const program = findTool('versitygw');
  if (program === null) throw new TypeError('The program versitygw is not installed');
  const root = await tempDir(ending);
  for (const folder of ['iam', 's3']) await mkdir(path.join(root, folder));
  const authority = createAuthority();
  const { cert, key } = authority.issue([PUBLIC_ADDRESS]);
  const documents = createServer({ cert: `${cert}${authority.cert}`, key }, issuer);
  documents.listen(path.join(root, 'issuer.sock'));
  await once(documents, 'listening');
  cleanUp(ending, async () => {
    documents.close();
    documents.closeAllConnections();
  });
  const main = [process.execPath, path.join(import.meta.dirname, 'main.ts'), program, root];
  const [unshare, ...words] = inOwnNetwork(main);
  const env = {
    ...{ PATH: process.env['PATH'] ?? '', HOME: root },
    ...{ ROOT_ACCESS_KEY_ID: OWNER.accessKeyId, ROOT_SECRET_ACCESS_KEY: OWNER.secretAccessKey },
  };
  const child = spawn(unshare, words, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  let written = '';
  child.stderr.on('data', (chunk: Buffer) => (written += String(chunk)));
  cleanUp(ending, async () => {
    const exited = child.exitCode === null ? once(child, 'exit') : Promise.resolve();
    child.stdin.end();
    await exited;
  });
  const outcome = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  if (String(outcome[0]) !== 'ready\n') throw new Error(`The cloud does not start:\n${written}`);
  const reach = async (name: string): Promise<string> => {
    const proxy = await startTcpProxy({ path: path.join(root, `${name}.sock`) });
    cleanUp(ending, () => proxy.close());
    return `http://127.0.0.1:${proxy.port}`;
  };
  const [s3Url, stsUrl] = [await reach('s3'), await reach('iam')];
  const sessions = path.join(root, 'iam', 'iam.json');
  return {
    thumbprint: new X509Certificate(authority.cert).fingerprint.replaceAll(':', '').toLowerCase(),
    stsUrl,
    iam: new IAMClient({ region: REGION, endpoint: stsUrl, credentials: OWNER }),
    s3: (credentials) =>
      new S3Client({ region: REGION, endpoint: s3Url, forcePathStyle: true, credentials: credentials ?? OWNER }),
    async endSessions() {
      const state = JSON.parse(await readFile(sessions, 'utf8')) as {
        sessions: Record<string, { expiration: string }>;
      };
      for (const session of Object.values(state.sessions)) session.expiration = '2000-01-01T00:00:00Z';
      await writeFile(sessions, JSON.stringify(state));
    },
  };
}
