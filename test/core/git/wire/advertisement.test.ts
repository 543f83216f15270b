/** info/refs, compared byte for byte with `git http-backend`. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import {
  type AdvertisedRefs,
  receivePackAdvertisement,
  uploadPackAdvertisement,
  uploadPackCapabilities,
} from '../../../../core/git/wire/advertisement.ts';
import { parseGitProtocolHeader } from '../../../../core/git/wire/protocol-version.ts';
import { piecesOf, type RefPart } from '../../../../core/git/wire/ref-parts.ts';
import { runHttpBackend } from '../../../support/git-http-backend.ts';
import { git, temporaryFolder } from '../../../support/git-process.ts';
import { createSampleRepository, inRuns, refsOf } from '../../../support/sample-repository.ts';

describe('The advertisement of refs', () => {
  const folder = temporaryFolder('advertisement');
  let born: AdvertisedRefs;
  let unborn: AdvertisedRefs;
  let agent: string;

  beforeAll(() => {
    const runs = inRuns(refsOf(createSampleRepository(folder.path, 'born.git')));
    createSampleRepository(folder.path, 'unborn.git');
    git(['symbolic-ref', 'HEAD', 'refs/heads/later'], { cwd: join(folder.path, 'unborn.git') });
    git(['init', '--quiet', '--bare', join(folder.path, 'empty.git')]);
    git(['config', 'receive.advertisePushOptions', 'true'], { cwd: join(folder.path, 'empty.git') });
    git(['config', 'http.receivepack', 'true'], { cwd: join(folder.path, 'empty.git') });
    born = { head: 'refs/heads/main', runs };
    unborn = { head: 'refs/heads/later', runs };
    agent = `git/${git(['version']).toString().trim().split(' ')[2]}`;
  });
  afterAll(() => folder.remove());

  async function ofGit(repository: string, service: string, version: number): Promise<string> {
    const target = `/${repository}.git/info/refs?service=${service}`;
    const { body } = await runHttpBackend(folder.path, { method: 'GET', target, protocol: `version=${version}` });
    // Newer versions of git also name their operating system here.
    return body.toString('utf8').replace(/agent=(git\/[^ \n]*)/g, (_, sent: string) => {
      agent = sent;
      return `agent=${sent}`;
    });
  }
  const ours = (parts: readonly RefPart[]) => Buffer.concat([...piecesOf(parts)]).toString('utf8');

  for (const version of [0, 1] as const) {
    test(`for a fetch in v${version} is equal to git's`, async () => {
      const golden = await ofGit('born', 'git-upload-pack', version);
      assert.match(golden, /symref=HEAD:refs\/heads\/main/);
      assert.match(golden, /refs\/tags\/v1-signed\^\{\}/);
      assert.equal(ours(uploadPackAdvertisement(born, { version, agent })), golden);
    });

    test(`for a push in v${version} is equal to git's, without HEAD and peeled tags`, async () => {
      const golden = await ofGit('born', 'git-receive-pack', version);
      assert.equal(ours(receivePackAdvertisement(born, { version, agent })), golden);
    });

    test(`for a fetch in v${version} does not name a HEAD whose branch does not exist, like git's`, async () => {
      const golden = await ofGit('unborn', 'git-upload-pack', version);
      assert.doesNotMatch(golden, /HEAD/);
      assert.equal(ours(uploadPackAdvertisement(unborn, { version, agent })), golden);
    });

    test(`for a push in v${version} into an empty repository is equal to git's`, async () => {
      const golden = await ofGit('empty', 'git-receive-pack', version);
      assert.match(golden, /0{40} capabilities\^\{\}/);
      assert.equal(ours(receivePackAdvertisement({ head: 'refs/heads/main', runs: [] }, { version, agent })), golden);
    });
  }

  test('for a fetch of an empty repository has the capabilities after a zero id', () => {
    const parts = uploadPackAdvertisement({ head: 'refs/heads/main', runs: [] }, { version: 0, agent: 'strata/1' });
    assert.match(
      ours(parts),
      /^001e# service=git-upload-pack\n000001330{40} capabilities\^\{\}\0multi_ack .* agent=strata\/1\n0000$/,
    );
  });

  test("for a fetch in v2 is equal to git's, except the command object-info, which is not offered", async () => {
    const golden = await ofGit('born', 'git-upload-pack', 2);
    assert.equal(ours([uploadPackCapabilities(agent)]), golden.replace('0010object-info\n', ''));
  });
});

describe('The protocol version', () => {
  for (const [header, version] of [
    [undefined, 0],
    ['', 0],
    ['version=0', 0],
    ['version=1', 1],
    ['version=2', 2],
    ['version=3', 0],
    ['version=2:version=1', 2],
    ['version=1:version=2', 2],
    ['foo:version=1:bar=2', 1],
    ['VERSION=2', 0],
    ['version=2 ', 0],
    [' version=2', 0],
  ] as const) {
    test(`of a client that sends ${JSON.stringify(header)} is ${version}`, () => {
      assert.equal(parseGitProtocolHeader(header), version);
    });
  }
});
