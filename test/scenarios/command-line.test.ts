/** Every subcommand of the command line, in both forms of its output, run by the oldest Node against a server. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OAuth2Issuer, OAuth2Service } from 'oauth2-mock-server';
import { beforeAll, describe, test } from 'vitest';
import { COMMANDS } from '../../apps/cli/definitions/all-commands.ts';
import { entryOf } from '../../core/audit/entry.ts';
import { canonicalJson } from '../../core/kernel/json.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { bundledCommand, type CommandLine, commandLine, type RunOptions } from '../support/command-line.ts';
import { createIssuerNetwork, type IssuerNetwork } from '../support/identity-issuer.ts';
import { noPseudoTerminal, startOnTerminal } from '../support/pseudo-terminal.ts';
import { until } from '../support/read-models.ts';
import { skippedFor } from '../support/skipped.ts';
import {
  type Account,
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  createToken,
  type Finished,
  git,
  newWorkTree,
  type Strata,
  tryAdmin,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type WebhookReceivers, webhookReceivers } from '../support/webhook-receiver.ts';

const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;
const UNKNOWN = '01890000-0000-7000-8000-000000000000';

describe('The command line', () => {
  const ending = suiteEnding();
  const issuer = new OAuth2Issuer();
  const covered = new Set<string>();
  let network: IssuerNetwork;
  let strata: Strata;
  let shared: SharedParts;
  let receivers: WebhookReceivers;
  let ada: Account;
  let command: readonly string[];
  let cli: CommandLine;

  beforeAll(async () => {
    receivers = await webhookReceivers(ending);
    network = createIssuerNetwork(receivers.authority);
    const [parts, bundled] = await Promise.all([sharedParts(ending), bundledCommand(ending)]);
    shared = parts;
    strata = await startNode(ending, shared, receivers.env);
    ada = await createAccount(strata, 'ada');
    command = bundled;
    cli = await commandLine(ending, strata, { command, env: { SERVICE_TOKEN: ada.token } });
    await issuer.keys.generate('RS256');
    issuer.url = await network.serve(ending, new OAuth2Service(issuer).requestHandler);
  });

  /** Returns a command line in a home of its own, with these variables. */
  const another = (env: Readonly<Record<string, string>>): Promise<CommandLine> =>
    commandLine(ending, strata, { command, env });

  function cover(args: readonly string[]): void {
    const name = COMMANDS.map((definition) => definition.name)
      .filter((candidate) => args.join(' ').startsWith(candidate))
      .toSorted((a, b) => b.length - a.length)[0];
    if (name !== undefined) covered.add(`${name}${args.includes('--json') ? ' --json' : ''}`);
  }

  /** Runs a command that must succeed, and returns its output. */
  async function text(args: readonly string[], options?: RunOptions): Promise<string> {
    cover(args);
    return cli.done(args, options);
  }

  async function json<Body>(args: readonly string[], options?: RunOptions): Promise<Body> {
    cover([...args, '--json']);
    return cli.json<Body>(args, options);
  }

  /** Runs a command that must fail with this status, with words on standard error and nothing on standard output. */
  async function fails(
    status: number,
    words: RegExp,
    args: readonly string[],
    options?: RunOptions,
  ): Promise<Finished> {
    const finished = await cli.run(args, options);
    assert.deepEqual([finished.code, finished.stdout], [status, ''], `${args.join(' ')}: ${finished.stderr}`);
    assert.match(finished.stderr, words);
    assert.doesNotMatch(finished.stderr, /\n\s+at /);
    return finished;
  }

  const bodyOf = async (target: string): Promise<unknown> => (await api(strata, ada.token, 'GET', target)).body;

  test('whoami and usage show the account and what it uses', async () => {
    assert.deepEqual(await json(['whoami']), await bodyOf('/v1/account/usage'));
    assert.deepEqual(await json(['usage']), await bodyOf('/v1/account/usage'));
    assert.match(await text(['usage']), /^repositories\t\d+\nstorage\t/);
    const shown = await text(['whoami'], { env: { SERVICE_USERNAME: 'ada' } });
    assert.match(shown, /^account\tada\nservice\thttp.*\ntoken from\tSERVICE_TOKEN\n/);
  });

  test('repo creates, lists, shows, changes and deletes repositories', async () => {
    const made = await json<{ id: string; clone_url: string }>(['repo', 'create', 'one', '--description', 'The first']);
    assert.match(
      await text(['repo', 'create', 'two', '--default-branch', 'trunk']),
      /^Created ada\/two\nhttp.*two\.git\n$/,
    );
    assert.deepEqual(await json(['repo', 'get', 'ada/one']), made);
    assert.match(await text(['repo', 'get', made.clone_url]), /^name\tada\/one\n/);
    assert.deepEqual(await json(['repo', 'list']), await bodyOf('/v1/repositories?limit=100'));
    assert.match(await text(['repo', 'list']), /^ada\/one\tThe first\tmaster\t0\t\n/);
    assert.deepEqual(
      await json(['repo', 'list', '--page', '1', '--limit', '1']),
      await bodyOf('/v1/repositories?page=1&limit=1'),
    );
    assert.equal((await text(['repo', 'list', '--limit', '1'])).split('\n').length, 2);
    assert.match(await text(['repo', 'edit', 'one', '--description', 'Changed']), /^description\tChanged$/m);
    const edited = await json<{ default_branch: string }>(['repo', 'edit', 'one', '--default-branch', 'main']);
    assert.equal(edited.default_branch, 'main');
    assert.match(
      await text(['repo', 'rename', 'one', 'First']),
      /^Renamed ada\/one to ada\/First\nhttp.*\/r\/ada\/First\.git\n$/,
    );
    await fails(1, /The repository is ada\/First now/, ['repo', 'get', 'one']);
    await fails(1, /A repository with this name exists already/, ['repo', 'rename', 'first', 'two']);
    assert.equal((await json<{ id: string }>(['repo', 'rename', 'first', 'one'])).id, made.id);
    assert.equal(await text(['repo', 'url', 'one']), `${made.clone_url}\n`);
    assert.match(await text(['repo', 'url', 'one', '--web']), /\/ada\/one\n$/);
    assert.equal((await json<{ id: string }>(['repo', 'url', 'one'])).id, made.id);
    await fails(2, /This deletes ada\/two .*\nAdd --yes/, ['repo', 'delete', 'two']);
    assert.equal(await text(['repo', 'delete', 'two', '--yes']), 'Deleted ada/two\n');
    cover(['repo', 'delete', '--json']);
    assert.equal(await cli.done(['repo', 'delete', 'one', '--yes', '--json']), '');
    await fails(1, /Repository not found/, ['repo', 'get', 'ada/one']);
    await fails(1, /bucket/i, ['repo', 'create', 'three', '--storage-bucket-id', UNKNOWN]);
  });

  test('repo restores, undeletes and purges', async () => {
    const url = await createRepository(strata, ada, 'undone');
    const work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', url, 'main', 'main:gone']);
    const at = new Date().toISOString();
    await sleep(5);
    await git(work, ['push', '--quiet', url, ':gone']);
    await fails(2, /This moves branches and tags of ada\/undone\nAdd --dry-run/, [
      'repo',
      'restore',
      'undone',
      '--at',
      at,
    ]);
    await fails(2, /To which moment/, ['repo', 'restore', 'undone']);
    assert.match(
      await text(['repo', 'restore', 'undone', '--at', at, '--dry-run']),
      /^refs\/heads\/gone\tcreate\t0+\t/,
    );
    const restored = await json<{ event_id: string }>(['repo', 'restore', 'undone', '--at', at, '--yes']);
    assert.match(await text(['repo', 'restore', 'undone', '--event', restored.event_id, '--yes']), /^Nothing changes/);
    const back = ['--before', restored.event_id, '--refs', 'refs/heads/gone', '--yes'];
    assert.match(await text(['repo', 'restore', 'undone', ...back]), /^refs\/heads\/gone\tdelete\t/);
    await fails(2, /This removes what no branch .* ada\/undone reaches for good/, ['repo', 'purge', 'undone']);
    assert.match(await text(['repo', 'purge', 'undone', '--dry-run']), /^A purge frees \d+ bytes\n$/);
    await text(['repo', 'delete', 'undone', '--yes']);
    const [, id = ''] =
      (await text(['repo', 'deleted']))
        .split('\n')
        .find((line) => line.startsWith('undone'))
        ?.split('\t') ?? [];
    assert.ok((await json<{ repositories: object[] }>(['repo', 'deleted'])).repositories.length > 0);
    assert.match(await text(['repo', 'undelete', 'undone']), /^Undeleted ada\/undone\n/);
    await text(['repo', 'delete', 'undone', '--yes']);
    assert.equal((await json<{ name: string }>(['repo', 'undelete', id, '--name', 'back'])).name, 'back');
    await text(['repo', 'delete', 'back', '--yes']);
    const deleted = /^storage\t.*; [\d.]+ \S*B of it deleted, until retention or purge$/m;
    assert.match(await text(['whoami']), deleted);
    assert.match(await text(['usage']), deleted);
    assert.match(await text(['repo', 'purge', id, '--yes']), /^Purged: [1-9]\d* bytes leave storage/);
    const waiting = /^waiting to leave storage\t[1-9][\d.]* \S*B/m;
    assert.match(await text(['whoami']), waiting);
    assert.match(await text(['usage']), waiting);
    await fails(1, /has left storage with the event/, ['repo', 'undelete', id]);
    assert.deepEqual(await json(['repo', 'purge', id, '--yes']), { event_id: null, freed_bytes: 0 });
  });

  test('ref lists, creates, moves and deletes refs without a clone', async () => {
    const url = await createRepository(strata, ada, 'pointers');
    const work = await newWorkTree(ending);
    const first = (await git(work, ['rev-parse', 'HEAD'])).trim();
    const second = await commitFile(work, 'file', 'text\n');
    await git(work, ['push', '--quiet', url, 'main']);
    const zeros = '0'.repeat(40);
    const row = (...columns: readonly string[]) => `${columns.join('\t')}\n`;
    const created = await text(['ref', 'create', 'pointers', 'old', first]);
    assert.equal(created, row('refs/heads/old', 'create', zeros, first));
    const tag = await json<{ event_id: string; updates: object[] }>([
      ...['ref', 'create', 'ada/pointers', 'refs/tags/v1', first],
    ]);
    assert.match(tag.event_id, ID);
    assert.deepEqual(tag.updates, [{ ref: 'refs/tags/v1', before: zeros, after: first, kind: 'create' }]);
    await fails(1, /^error: Nothing was changed. refs\/heads\/old: it exists already/, [
      ...['ref', 'create', 'pointers', 'old', second],
    ]);
    const listed = await text(['ref', 'list', 'pointers']);
    const rows = [row('refs/heads/main', second, ''), row('refs/heads/old', first, ''), row('refs/tags/v1', first, '')];
    assert.equal(listed, rows.join(''));
    assert.deepEqual(await json(['ref', 'list', 'pointers']), await bodyOf('/v1/repos/ada/pointers/refs'));
    const moved = await text(['ref', 'move', 'pointers', 'old', second]);
    assert.equal(moved, row('refs/heads/old', 'fast-forward', first, second));
    assert.match(await text(['ref', 'move', 'pointers', 'old', second]), /^Nothing changes/);
    await fails(1, /it has moved/, ['ref', 'move', 'pointers', 'old', first, '--expected', first]);
    const forced = ['ref', 'move', 'pointers', 'refs/tags/v1', second];
    assert.equal((await json<{ updates: object[] }>(forced)).updates.length, 1);
    await fails(1, /There is no refs\/tags\/v2/, ['ref', 'delete', 'pointers', 'refs/tags/v2']);
    const deleted = await text(['ref', 'delete', 'pointers', 'refs/tags/v1']);
    assert.equal(deleted, row('refs/tags/v1', 'delete', second, zeros));
    const gone = await json<{ updates: object[] }>(['ref', 'delete', 'pointers', 'old', '--expected', 'any']);
    assert.equal(gone.updates.length, 1);
    assert.equal(await git(work, ['ls-remote', url, 'refs/*']), `${second}\trefs/heads/main\n`);
  });

  test('commit writes and deletes files of a folder without a clone', async () => {
    const url = await createRepository(strata, ada, 'written');
    const folder = path.join(cli.home, 'work', 'site');
    await mkdir(path.join(folder, 'docs', '.git'), { recursive: true });
    const bytes = Buffer.from([0, 13, 10, 255]);
    await writeFile(path.join(folder, 'docs', 'bytes'), bytes);
    await writeFile(path.join(folder, 'docs', '.git', 'config'), 'kept for git');
    await writeFile(path.join(folder, 'run'), '#!/bin/sh\n', { mode: 0o755 });
    await symlink('docs/bytes', path.join(folder, 'link'));
    const at = { cwd: folder };
    const commit = (...more: readonly string[]) => ['commit', 'written', '--message', 'A change', ...more];
    const zeros = '0'.repeat(40);
    const first = await text(commit('--branch', 'main', 'docs', 'run', 'link'), at);
    const [ref, kind, before, head = ''] = first.trimEnd().split('\t');
    assert.deepEqual([ref, kind, before], ['refs/heads/main', 'create', zeros]);
    const clone = path.join(await tempDir(ending), 'clone.git');
    const files = async (branch: string) => {
      await rm(clone, { recursive: true, force: true });
      await git(cli.home, ['clone', '--quiet', '--bare', url, clone]);
      return git(clone, ['ls-tree', '-r', '--format=%(objectmode) %(path)', branch]);
    };
    assert.equal(await files('main'), '100644 docs/bytes\n120000 link\n100755 run\n');
    assert.equal(await git(clone, ['cat-file', '-s', 'main:docs/bytes']), `${bytes.length}\n`);
    assert.match(
      await text(commit('--branch', 'main', 'run', './run'), at),
      /^Nothing changes: refs\/heads\/main is so/,
    );
    await writeFile(path.join(folder, 'a,b'), 'text\n');
    const dry = commit('--branch', 'main', 'a,b', '--delete', 'docs/bytes', '--delete', 'link');
    const rows = ['a,b\tadded\t\t1\t0', 'docs/bytes\tdeleted\t\t\t', 'link\tdeleted\t\t0\t1'];
    assert.equal(await text([...dry, '--dry-run'], at), rows.map((row) => `${row}\n`).join(''));
    const written = await json<{ before: string; after: string }>(dry, at);
    assert.equal(written.before, head);
    assert.equal(await files('main'), '100644 a,b\n100755 run\n');
    await fails(1, /refs\/heads\/main: it has moved/, commit('--branch', 'main', 'docs', '--expected', head), at);
    await fails(1, /There is no branch next/, commit('--branch', 'next', 'docs'), at);
    await text(commit('--branch', 'next', 'docs', '--start', 'main'), at);
    assert.equal(await files('next'), '100644 a,b\n100644 docs/bytes\n100755 run\n');
    assert.equal((await cli.run(commit('--branch', 'main', '--delete', 'a,b', '--expected', 'any'), at)).code, 0);
    await fails(2, /is not in the current folder/, commit('--branch', 'main', '../other'), at);
    await fails(1, /cannot be read: ENOENT/, commit('--branch', 'main', 'none'), at);
    await fails(2, /There is nothing to commit/, commit('--branch', 'main'), at);
  });

  test('commit sends large files beside small ones, up to 64 MiB each', async () => {
    const url = await createRepository(strata, ada, 'large-files');
    const folder = path.join(cli.home, 'work', 'large');
    const at = { cwd: folder };
    const commit = (...more: readonly string[]) => [
      ...['commit', 'large-files', '--branch', 'main', '--message', 'Large files', ...more],
    ];
    const files = new Map([
      ['a/film "1"', randomBytes(3_000_000)],
      ['a/small', Buffer.from('small\n')],
      ['largest', Buffer.alloc(64 * 1024 * 1024, 'text')],
    ]);
    await mkdir(path.join(folder, 'a'), { recursive: true });
    for (const [name, bytes] of files) await writeFile(path.join(folder, name), bytes, { mode: 0o755 });
    await text(commit('a', 'largest', './largest'), at);
    const clone = path.join(await tempDir(ending), 'clone.git');
    await git(cli.home, ['clone', '--quiet', '--bare', url, clone]);
    for (const [name, bytes] of files) {
      const id = (await git(clone, ['hash-object', '--stdin'], bytes)).trim();
      assert.equal(
        await git(clone, ['ls-tree', 'main', '--format=%(objectmode) %(objectname)', name]),
        `100755 ${id}\n`,
      );
    }
    await writeFile(path.join(folder, 'larger'), Buffer.alloc(64 * 1024 * 1024 + 1));
    await fails(1, / larger is larger than 64 MiB/, commit('larger'), at);
    const fillers = Array.from({ length: 7 }, (_, n) => `small-${n}`);
    for (const name of fillers) await writeFile(path.join(folder, name), Buffer.alloc(1024 * 1024));
    await fails(1, /too large for one request/, commit(...fillers), at);
  });

  test('search finds the lines of files without a clone, in one list however long it is', async () => {
    const url = await createRepository(strata, ada, 'searched');
    const work = await newWorkTree(ending);
    const first = await commitFile(work, 'src/gear.c', 'int teeth = 12;\n\tno\tteeth\u001b[1m\n');
    await commitFile(work, 'many', 'gear\n'.repeat(250));
    await commitFile(work, 'more', 'wheel\n'.repeat(1_001));
    await git(work, ['push', '--quiet', url, 'main']);
    assert.equal(
      await text(['search', 'searched', 'teeth']),
      'src/gear.c\t1\tint teeth = 12;\nsrc/gear.c\t2\t no teeth\ufffd[1m\n',
    );
    const found = await json<{ matches: object[] }>(['search', 'ada/searched', 'teeth']);
    assert.deepEqual(found, await bodyOf('/v1/repos/ada/searched/search?q=teeth&limit=100'));
    const all = await json<{ matches: object[]; complete: boolean; pagination: object }>([
      'search',
      'searched',
      'gear',
    ]);
    assert.deepEqual([all.matches.length, all.complete], [250, true]);
    assert.deepEqual(all.pagination, { page: 0, limit: 250, total: 250, has_more: false });
    const cut = await cli.run(['search', 'searched', 'wheel']);
    assert.deepEqual([cut.code, cut.stdout.split('\n').length], [0, 1_001]);
    assert.match(cut.stderr, /warning: Not all files were searched/);
    assert.equal(
      await text(['search', 'searched', 'int \\w+ =', '--regex', '--path', 'src', '--ref', first]),
      'src/gear.c\t1\tint teeth = 12;\n',
    );
    assert.equal(await text(['search', 'searched', 'nothing']), '');
    await fails(1, /missing closing parenthesis/, ['search', 'searched', '(', '--regex']);
    await fails(1, /Path not found/, ['search', 'searched', 'teeth', '--path', 'src/*']);
  });

  test('tag create makes tags without a clone', async () => {
    const url = await createRepository(strata, ada, 'tagged');
    const work = await newWorkTree(ending);
    const head = await commitFile(work, 'file', 'text\n');
    await git(work, ['push', '--quiet', url, 'main']);
    assert.equal(await text(['tag', 'create', 'tagged', 'light', head]), `light\t${head}\tcommit\tno\n`);
    const made = await json<{ annotated: boolean; message: string }>([
      ...['tag', 'create', 'ada/tagged', 'v1', head, '--message', 'Version 1'],
    ]);
    assert.deepEqual([made.annotated, made.message], [true, 'Version 1\n']);
    await fails(1, /refs\/tags\/v1: it exists already/, ['tag', 'create', 'tagged', 'v1', head]);
    assert.equal(await text(['tag', 'create', 'tagged', 'v1', head, '--move']), `v1\t${head}\tcommit\tno\n`);
    assert.match(await text(['tag', 'create', 'tagged', 'v1', head, '--move']), /^Nothing changes: v1 is so already/);
    const rows = [`${head}\trefs/tags/light\n`, `${head}\trefs/tags/v1\n`];
    assert.equal(await git(work, ['ls-remote', '--tags', url]), rows.join(''));
  });

  test('blame shows the commit and the push of each line of a file, in one list however long it is', async () => {
    const url = await createRepository(strata, ada, 'blamed');
    const work = await newWorkTree(ending);
    const first = await commitFile(work, 'src/old', 'one\n\ttwo\nthree');
    await git(work, ['push', '--quiet', url, 'main']);
    const long = Array.from({ length: 2_200 }, (_, index) => `line ${index}\n`);
    await git(work, ['rm', '--quiet', '--cached', 'src/old']);
    await commitFile(work, 'src/new', 'one\n\ttwo\nthree');
    await commitFile(work, 'long', long.join(''));
    const second = await commitFile(work, 'src/new', 'one\n\ttwo\nthree\u001b[1m');
    await commitFile(work, 'long', long.map((line, index) => (index % 2 === 0 ? line : `changed ${line}`)).join(''));
    await git(work, ['push', '--quiet', url, 'main']);
    const blame = await json<{ ranges: { commit: string; event_id: string; actor: { kind: string; id: string } }[] }>([
      'blame',
      'blamed',
      'src/new',
    ]);
    assert.deepEqual(blame, await bodyOf('/v1/repos/ada/blamed/blame/src/new'));
    const [old, changed] = blame.ranges.map((range) => {
      return `${range.commit}\t${range.event_id}\t${range.actor.kind} ${range.actor.id}`;
    });
    assert.deepEqual(
      blame.ranges.map(({ commit }) => commit),
      [first, second],
    );
    assert.equal(
      await text(['blame', 'ada/blamed', 'src/new']),
      `${old}\tsrc/old\t1\tone\n${old}\tsrc/old\t2\t\ttwo\n${changed}\tsrc/new\t3\tthree\ufffd[1m\n`,
    );
    const earlier = await text(['blame', 'blamed', 'src/old', '--ref', first]);
    assert.match(earlier, new RegExp(`^${first}\t.*\tsrc/old\t1\tone\n.*\n.*\t3\tthree\n$`));
    const all = await json<{ ranges: { start: number }[]; truncated: boolean; pagination: object }>([
      ...['blame', 'blamed', 'long'],
    ]);
    assert.deepEqual([all.ranges.at(-1)?.start, all.ranges.length, all.truncated], [2_200, 2_200, false]);
    assert.deepEqual(all.pagination, { page: 0, limit: 2_200, total: 2_200, has_more: false });
    await fails(1, /does not lead to a file/, ['blame', 'blamed', 'src']);
    await fails(1, /Path not found/, ['blame', 'blamed', 'nothing']);
    await fails(2, /"src\/\.\.\/long" is no path/, ['blame', 'blamed', 'src/../long']);
  });

  test('repo clone makes a clone that pushes with the same login', async () => {
    assert.match((await cli.run(['repo', 'create', 'cloned', '--clone'])).stderr, /Cloning into 'cloned'/);
    const work = path.join(cli.home, 'work', 'cloned');
    const script = 'echo 1 >a && git add a && git commit -qm One && git push -q origin HEAD:refs/heads/main';
    const pushed = await cli.program(['sh', '-c', script], { cwd: work });
    assert.equal(pushed.code, 0, pushed.stderr);
    const body = await json<{ name: string }>(['repo', 'clone', 'cloned', 'again']);
    assert.equal(body.name, 'cloned');
    await text(['repo', 'clone', 'ada/cloned', 'third']);
    assert.match(await readFile(path.join(cli.home, 'work', 'again', 'a'), 'utf8'), /1/);
    assert.ok(!(await readFile(path.join(work, '.git/config'), 'utf8')).includes(ada.token));
    assert.match(await text(['repo', 'get'], { cwd: work }), /^name\tada\/cloned\n/);
    await fails(2, /No remote of this folder/, ['repo', 'get']);
    assert.equal(await text(['open'], { cwd: work }), `${strata.url}/ada/cloned\n`);
    assert.equal(await text(['open']), `${strata.url}/\n`, 'elsewhere the website');
    assert.deepEqual(await json(['open', 'ada/other']), { url: `${strata.url}/ada/other` });
    await fails(1, /git clone failed/, ['repo', 'clone', 'cloned', 'again']);
  });

  test('token creates, lists, shows, changes and revokes tokens', async () => {
    const secret = (
      await text(['token', 'create', '--name', 'reader', '--grants', 'api_repos_read', '--expires-at', '30d'])
    ).trim();
    assert.match(secret, /^strata_\w{46}$/);
    const made = await json<{ id: string; token: string; expires_at: null }>(['token', 'create', '--name', 'all']);
    assert.deepEqual(
      [made.expires_at, (await api(strata, made.token, 'GET', '/v1/access-tokens')).status],
      [null, 200],
    );
    const listed = await json<{ access_tokens: { name: string }[] }>(['token', 'list']);
    assert.deepEqual(listed.access_tokens.map(({ name }) => name).slice(0, 2), ['all', 'reader']);
    assert.match(await text(['token', 'list']), /\treader\tAPI_REPOS_READ\tall\t/);
    assert.match(await text(['token', 'get', made.id]), /^name\tall$/m);
    assert.equal((await json<{ id: string }>(['token', 'get', made.id])).id, made.id);
    const edited = await json<{ name: string; grants: string[] }>([
      'token',
      'edit',
      made.id,
      '--name',
      'some',
      '--grants',
      'GIT_HTTP_READ,API_REPOS_READ',
    ]);
    assert.deepEqual([edited.name, edited.grants], ['some', ['GIT_HTTP_READ', 'API_REPOS_READ']]);
    assert.match(await text(['token', 'edit', made.id, '--expires-at', 'never']), /^expires\tnever$/m);
    assert.equal(await text(['token', 'delete', made.id]), `Revoked ${made.id}\n`);
    cover(['token', 'delete', '--json']);
    await fails(1, /Access token not found/, ['token', 'delete', made.id, '--json']);
  });

  test('webhook creates, pings, shows deliveries, redelivers, rotates and deletes', async () => {
    const receiver = await receivers.start();
    const made = await json<{ id: string; secret: string }>([
      'webhook',
      'create',
      receiver.url,
      '--events',
      'push,create',
    ]);
    assert.match(await text(['webhook', 'create', receiver.url, '--inactive']), /^state\tinactive$/m);
    assert.match(
      await text(['webhook', 'list']),
      new RegExp(`^${made.id}\t${receiver.url}\tpush,create\tactive$`, 'm'),
    );
    assert.deepEqual(await json(['webhook', 'list']), await bodyOf('/v1/webhooks'));
    assert.match(await text(['webhook', 'get', made.id]), /^events\tpush,create$/m);
    assert.equal((await json<{ id: string }>(['webhook', 'get', made.id])).id, made.id);
    const { delivery_id: delivery } = await json<{ delivery_id: string }>(['webhook', 'ping', made.id]);
    assert.match(await text(['webhook', 'ping', made.id]), ID);
    await receiver.until(2);
    await until(async () => /\tSUCCESS\t204\t1\t/.test(await text(['webhook', 'deliveries', made.id])));
    type Deliveries = { deliveries: { id: string; payload?: { type: string } }[] };
    const listed = await json<Deliveries>(['webhook', 'deliveries', made.id, '--include-payload', '--limit', '2']);
    assert.deepEqual(
      listed.deliveries.map(({ payload }) => payload?.type),
      ['ping', 'ping'],
    );
    assert.match(await text(['webhook', 'deliveries', made.id, '--include-payload']), /"type": "ping"/);
    await json(['webhook', 'redeliver', made.id, delivery]);
    assert.match(await text(['webhook', 'redeliver', made.id, delivery]), /is pending again/);
    const rotated = await json<{ secret: string }>(['webhook', 'rotate-secret', made.id]);
    assert.notEqual(rotated.secret, made.secret);
    assert.match(await text(['webhook', 'rotate-secret', made.id]), /^secret\twhsec_/m);
    assert.match(await text(['webhook', 'edit', made.id, '--inactive']), /^state\tinactive$/m);
    assert.deepEqual((await json<{ events: string[] }>(['webhook', 'edit', made.id, '--events', 'push'])).events, [
      'push',
    ]);
    assert.equal(await text(['webhook', 'delete', made.id]), `Deleted ${made.id}\n`);
    cover(['webhook', 'delete', '--json']);
    await fails(1, /Webhook not found/, ['webhook', 'delete', made.id, '--json']);
    await fails(1, /^error: url: /, ['webhook', 'create', 'http://receiver.example/']);
  });

  test('bucket adds, changes, verifies and forgets buckets, and takes secrets from standard input', async () => {
    const place = ['--provider', 'MINIO', '--bucket-name', 'layers', '--region', 'us-east-1'];
    const access = ['--endpoint-url', 'https://127.0.0.1:9', '--access-key-id', 'KEY1', '--secret-access-key-stdin'];
    const input = { input: 'wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY\n' };
    const made = await json<{ id: string; status: string }>(['bucket', 'create', 'one', ...place, ...access], input);
    assert.equal(made.status, 'PENDING_VERIFICATION');
    assert.match(
      await text(['bucket', 'create', 'two', ...place, ...access, '--key-prefix', 'two'], input),
      /^prefix\ttwo\/$/m,
    );
    assert.match(await text(['bucket', 'list']), /\tone\tPENDING_VERIFICATION\tMINIO layers\//);
    assert.deepEqual(await json(['bucket', 'list']), await bodyOf('/v1/storage-buckets'));
    assert.match(await text(['bucket', 'get', made.id]), /^name\tone$/m);
    assert.deepEqual(await json(['bucket', 'get', made.id]), made);
    assert.match(await text(['bucket', 'edit', made.id, '--default']), /^default\tyes$/m);
    assert.equal((await json<{ is_default: boolean }>(['bucket', 'edit', made.id, '--no-default'])).is_default, false);
    await fails(1, /at the step put/, ['bucket', 'verify', made.id]);
    cover(['bucket', 'verify']);
    cover(['bucket', 'verify', '--json']);
    const { errors } = await json<{ errors: { storage_bucket_id: string }[] }>(['bucket', 'errors', '--limit', '5']);
    assert.equal(errors[0]?.storage_bucket_id, made.id);
    assert.match(await text(['bucket', 'errors', '--storage-bucket-id', made.id]), /\tverify\t/);
    assert.match(await text(['bucket', 'oidc-setup']), /^subject\taccount:/m);
    assert.deepEqual(await json(['bucket', 'oidc-setup']), await bodyOf('/v1/storage-buckets/oidc-setup'));
    await fails(2, /Add --yes/, ['bucket', 'delete', made.id]);
    assert.equal(await text(['bucket', 'delete', made.id, '--yes']), `Deleted ${made.id}\n`);
    cover(['bucket', 'delete', '--json']);
    await fails(1, /not found/, ['bucket', 'delete', made.id, '--yes', '--json']);
  });

  const newRule = (subject: string): readonly string[] => [
    ...['trust-rule', 'create', '--name', subject, '--issuer', issuer.url ?? '', '--subject', subject],
    ...['--grants', 'GIT_HTTP_WRITE,API_REPOS_READ,API_WEBHOOKS'],
  ];
  const identityToken = (sub: string): Promise<string> =>
    issuer.buildToken({
      expiresIn: 300,
      scopesOrTransform: (_header, payload) =>
        Object.assign(payload, { aud: `${strata.url}/ada`, sub, jti: randomUUID() }),
    });

  test('trust-rule makes, changes and deletes rules, and oidc-exchange uses them', async () => {
    const made = await json<{ id: string; audience: string }>([
      ...newRule('repo:acme/site'),
      '--claims',
      'ref=refs/heads/*',
    ]);
    assert.equal(made.audience, `${strata.url}/ada`);
    await fails(3, /strata trust-rule refusals/, [
      'oidc-exchange',
      '--id-token',
      await identityToken('repo:acme/site'),
    ]);
    assert.match(await text(['trust-rule', 'refusals', made.id]), /\tref\t/);
    const { refusals } = await json<{ refusals: object[] }>(['trust-rule', 'refusals', made.id]);
    assert.equal(refusals.length, 1);
    assert.match(await text(newRule('repo:acme/other')), /^subject\trepo:acme\/other$/m);
    assert.match(await text(['trust-rule', 'list']), /\trepo:acme\/site\t/);
    assert.deepEqual(await json(['trust-rule', 'get', made.id]), made);
    assert.match(await text(['trust-rule', 'get', made.id]), /^claim ref\trefs\/heads\/\*$/m);
    assert.equal((await json<{ trust_rules: object[] }>(['trust-rule', 'list'])).trust_rules.length, 2);
    assert.match(await text(['trust-rule', 'edit', made.id, '--name', 'changed']), /^name\tchanged$/m);
    assert.equal((await json<{ name: string }>(['trust-rule', 'edit', made.id, '--name', 'again'])).name, 'again');

    const file = path.join(cli.home, 'work', 'identity.txt');
    await writeFile(file, `${await identityToken('repo:acme/other')}\n`);
    const token = (await text(['oidc-exchange', '--id-token', '@identity.txt'])).trim();
    assert.equal((await api(strata, token, 'GET', '/v1/repositories')).status, 200);
    const input = await identityToken('repo:acme/other');
    const body = await json<{ token: string }>(['oidc-exchange', '--id-token', '-'], { input });
    assert.equal((await api(strata, body.token, 'GET', '/v1/repositories')).status, 200);
    await fails(2, /There is no identity token/, ['oidc-exchange']);
    await fails(2, /cannot be read: ENOENT/, ['oidc-exchange', '--id-token', '@nothing']);

    assert.match(await text(['trust-rule', 'delete', made.id]), /have ended/);
    cover(['trust-rule', 'delete', '--json']);
    await fails(1, /not found/, ['trust-rule', 'delete', made.id, '--json']);
  });

  test('a job without a home exchanges its token, clones, commits, pushes and waits for the delivery', async () => {
    await text(newRule('repo:job/site'));
    await text(['repo', 'create', 'job']);
    const receiver = await receivers.start();
    const { id } = await json<{ id: string }>(['webhook', 'create', receiver.url, '--events', 'push']);
    const runner = await network.serve(ending, (request, response) => {
      const audience = new URL(request.url ?? '', 'https://runner').searchParams.get('audience');
      assert.deepEqual([request.headers.authorization, audience], ['Bearer of the runner', `${strata.url}/ada`]);
      void identityToken('repo:job/site').then((value) => response.end(JSON.stringify({ value })));
    });
    const job = await another({
      SERVICE_USERNAME: 'ada',
      CI: 'true',
      ACTIONS_ID_TOKEN_REQUEST_URL: `${runner}/token?api-version=2`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of the runner',
      NODE_EXTRA_CA_CERTS: receivers.env['NODE_EXTRA_CA_CERTS'] ?? '',
      WEBHOOK: id,
    });
    const strataShell = command.map((word) => `'${word}'`).join(' ');
    const script = `set -eu
      strata() { ${strataShell} "$@"; }
      strata oidc-exchange --save
      strata repo clone job
      cd job
      echo built >artifact && git add artifact && git commit --quiet -m Built
      git push --quiet origin HEAD:refs/heads/main
      tries=0
      until strata webhook deliveries "$WEBHOOK" | grep -q '\tSUCCESS\t'; do
        tries=$((tries + 1)); test "$tries" -lt 100; sleep 0.2
      done`;
    const finished = await job.program(['sh', '-c', script]);
    assert.equal(finished.code, 0, finished.stderr);
    assert.match(finished.stderr, /the token expires in 1\d minutes/);
    assert.equal((await receiver.until(1))[0]?.payload.ref, 'refs/heads/main');
  });

  test('api sends any request, and prints what came', async () => {
    assert.deepEqual(await json(['api', 'get', '/v1/account/usage']), await bodyOf('/v1/account/usage'));
    const made = await text(['api', 'POST', 'v1/repositories', '--body', '{"name":"by-api"}']);
    assert.equal(JSON.parse(made).name, 'by-api');
    const input = { input: '{"description":"from a pipe"}' };
    const changed = await cli.done(['api', 'PATCH', '/v1/repos/ada/by-api', '--body', '-'], input);
    assert.equal(JSON.parse(changed).description, 'from a pipe');
    const paged = JSON.parse(await cli.done(['api', 'GET', '/v1/repositories', '--query', 'limit=1,page=0']));
    assert.equal(paged.pagination.limit, 1);
    assert.match(await cli.done(['api', 'GET', '/v1/openapi.json', '--no-token']), /^\{"openapi"/);
    const refused = await cli.run(['api', 'GET', '/v1/repos/ada/none', '--json']);
    assert.deepEqual([refused.code, JSON.parse(refused.stdout).detail], [1, 'Repository not found']);
    await fails(2, /not JSON/, ['api', 'POST', '/v1/repositories', '--body', 'name=x']);
  });

  // The attack: a script pastes an address into the path, to have the token sent to another host.
  test('api sends its token to no other host', async () => {
    for (const target of ['https://evil.example/', '//evil.example/', 'http:evil.example', '/v1\\@evil.example']) {
      await fails(2, /not an address|Percent-encode/, ['api', 'GET', target]);
    }
    const { stderr } = await cli.run(['api', 'GET', '@evil.example/v1']);
    assert.match(stderr, /status 404/);
  });

  test('completion prints a script that the shell accepts', async () => {
    await writeFile(path.join(cli.home, 'work', 'strata.bash'), await text(['completion', 'bash']));
    const check = 'source strata.bash; COMP_WORDS=(strata repo cl); COMP_CWORD=2; _strata; echo "${COMPREPLY[@]}"';
    const asked = await cli.program(['bash', '-c', check]);
    assert.equal(asked.stdout, 'clone\n', asked.stderr);
    const grants =
      'source strata.bash; COMP_WORDS=(strata token create --grants API_O); COMP_CWORD=4; _strata; echo "${COMPREPLY[@]}"';
    assert.equal((await cli.program(['bash', '-c', grants])).stdout, 'API_OIDC_TRUST\n');
    assert.match(await text(['completion', 'zsh']), /^#compdef strata\n/);
    assert.match(await text(['completion', 'fish']), /complete -c strata -n "__strata_at 'repo'" -a 'clone'/);
    cover(['completion', '--json']);
    await fails(2, /Allowed choices are bash, zsh, fish/, ['completion', 'tcsh']);
  });

  describe('on a terminal', skippedFor(noPseudoTerminal()), () => {
    const longest = (shown: string): number =>
      Math.max(...shown.split(/\r?\n/).map((line) => line.replaceAll(/\u001b\[\d+m/g, '').length));

    test.for([60, 80, 200])('of %d columns a table fits, is aligned and has colours', async (columns, context) => {
      await api(strata, ada.token, 'POST', '/v1/repositories', {
        name: `shown-${columns}`,
        description: 'A description that is far longer than a narrow terminal has columns to show it in'.repeat(2),
      });
      const size = `stty cols ${columns} rows 24; exec "$@"`;
      const shell = ['sh', '-c', size, 'sh', ...command, 'repo', 'list'];
      const { TERM: _term, ...rest } = { TERM: '', ...cli.env };
      const terminal = startOnTerminal(context, shell, { ...rest, TERM: 'xterm' });
      await terminal.until(/shown-/);
      await terminal.until(/\n[^\n]+\n$/);
      const shown = terminal.shown();
      assert.ok(longest(shown) <= columns, shown);
      assert.match(shown, /\u001b\[2mNAME\s*\u001b\[22m/);
      assert.ok(shown.includes(`ada/shown-${columns}`), shown);
      assert.match(shown, columns === 200 ? /never|-|just now/ : /…/);
    });

    test.for([60, 80, 200])('of %d columns no list is wider than the terminal', async (columns, context) => {
      const long = 'a-name-that-is-far-longer-than-a-narrow-terminal-has-columns-to-show-it-in'.slice(0, 70);
      await api(strata, ada.token, 'POST', '/v1/access-tokens', { name: long, scope: 'ALL_REPO', grants: ['ALL'] });
      const lists = ['token list', 'webhook list', 'bucket list', 'bucket errors', 'trust-rule list'];
      const size = `stty cols ${columns} rows 24; for list in ${lists.map((list) => `'${list}'`).join(' ')}; do "$@" $list; done; echo END`;
      const terminal = startOnTerminal(context, ['sh', '-c', size, 'sh', ...command], { ...cli.env, TERM: 'xterm' });
      await terminal.until(/END/);
      const shown = terminal.shown();
      assert.ok(longest(shown) <= columns, shown);
      // The ids are whole, since other commands take them.
      assert.match(shown, /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/);
      assert.equal(shown.includes(long), columns === 200, shown);
    });

    test('with NO_COLOR there are no colours', async (context) => {
      const terminal = startOnTerminal(context, [...command, 'webhook', 'list'], { ...cli.env, NO_COLOR: '1' });
      await terminal.until(/URL/);
      assert.ok(!terminal.shown().includes('\u001b['), JSON.stringify(terminal.shown()));
    });

    test.for([
      ['n', /Nothing was done/, 200],
      ['\u0004', /Nothing was done/, 200],
      ['y', /Deleted ada\/asked/, 404],
    ] as const)('a deletion asks; %j answers it', async ([answer, said, status], context) => {
      await api(strata, ada.token, 'POST', '/v1/repositories', { name: 'asked' });
      const script = [...command, 'repo', 'delete', 'ada/asked'];
      // It stays a while, so that the last output is read before the end.
      const terminal = startOnTerminal(context, ['sh', '-c', '"$@"; sleep 5', 'sh', ...script], cli.env);
      await terminal.until(/This deletes ada\/asked with all its branches\. Do it\? \[y\/N\] /);
      terminal.type(answer === '\u0004' ? answer : `${answer}\n`);
      await terminal.until(said);
      assert.equal((await api(strata, ada.token, 'GET', '/v1/repos/ada/asked')).status, status);
    });

    test('open starts the browser with the page', async (context) => {
      const browser = path.join(cli.home, 'browser');
      const opened = path.join(cli.home, 'opened');
      await writeFile(browser, `#!/bin/sh\necho "$1" >'${opened}.new' && mv '${opened}.new' '${opened}'\n`, {
        mode: 0o755,
      });
      const script = [...command, 'open', 'ada/other'];
      const env = { ...cli.env, BROWSER: browser };
      const terminal = startOnTerminal(context, ['sh', '-c', '"$@"; sleep 5', 'sh', ...script], env);
      await terminal.until(/Opened http/);
      await until(async () => existsSync(opened));
      assert.equal(await readFile(opened, 'utf8'), `${strata.url}/ada/other\n`);
    });

    test('Ctrl-C ends a deletion that asks, and deletes nothing', async (context) => {
      await api(strata, ada.token, 'POST', '/v1/repositories', { name: 'kept' });
      const script = [...command, 'repo', 'delete', 'ada/kept'];
      const shell = ['sh', '-c', 'trap : INT; "$@"; echo "ended with $?"', 'sh', ...script];
      const terminal = startOnTerminal(context, shell, cli.env);
      await terminal.until(/Do it\?/);
      await terminal.interrupt();
      assert.match(terminal.shown(), /ended with 130/);
      assert.equal((await api(strata, ada.token, 'GET', '/v1/repos/ada/kept')).status, 200);
    });

    test('Ctrl-C ends a login that waits, quietly', async (context) => {
      const script = [...command, 'login', '--poll-seconds', '30', '--base-url', strata.url];
      const shell = ['sh', '-c', 'trap : INT; "$@"; echo "ended with $?"', 'sh', ...script];
      const terminal = startOnTerminal(context, shell, cli.env);
      await terminal.until(/code: /);
      await terminal.interrupt();
      assert.match(terminal.shown(), /ended with 130/);
      assert.doesNotMatch(terminal.shown(), /Error|at /);
    });
  });

  // The attack: somebody pushes or names a thing so that its listing rewrites the screen of whoever looks at it.
  test('shows control characters of names and descriptions as marks', async () => {
    const description = 'a\u001b[2Jb\u202egpj.exe\u0007\u009b31m';
    assert.equal(
      (await api(strata, ada.token, 'POST', '/v1/repositories', { name: 'hostile', description })).status,
      201,
    );
    const shown = await text(['repo', 'get', 'ada/hostile']);
    assert.match(shown, /^description\ta\ufffd\[2Jb\ufffdgpj\.exe\ufffd\ufffd31m$/m);
    assert.equal((await json<{ description: string }>(['repo', 'get', 'ada/hostile'])).description, description);
  });

  test('says what to do about each refusal, with the exit status of its kind', async () => {
    const { token } = await createToken(strata, 'ada', ['--grants', 'GIT_HTTP_READ']);
    const weak = { env: { SERVICE_TOKEN: token } };
    await fails(
      1,
      /lacks the grant API_REPOS_READ\nMake a token that has it: strata token create .*API_REPOS_READ/,
      ['repo', 'list'],
      weak,
    );
    await fails(2, /Set SERVICE_USERNAME/, ['repo', 'clone', 'one'], weak);
    const unknown = { env: { SERVICE_TOKEN: `strata_${'a'.repeat(46)}` } };
    const { stderr } = await fails(3, /not valid\nSign in: strata login/, ['usage'], unknown);
    assert.doesNotMatch(stderr, /strata_a/);
    await fails(3, /Not signed in/, ['usage'], { env: { SERVICE_TOKEN: '' } });
    await fails(2, /unknown option '--nothing'/, ['repo', 'list', '--nothing']);
    await fails(2, /missing required argument 'name'/, ['repo', 'create']);
    await fails(2, /required option '--name <NAME>' not specified/, ['token', 'create']);
    await fails(2, /Allowed are ALL, /, ['token', 'create', '--name', 'x', '--grants', 'EVERYTHING']);
    await fails(2, /whole number from 1 to 100/, ['webhook', 'deliveries', UNKNOWN, '--limit', '0']);
    await fails(2, /Usage: strata repo/, ['repo']);
    await fails(2, /is no time/, ['token', 'create', '--name', 'x', '--expires-at', 'tomorrow']);
    assert.match(await text([]), /^Usage: strata /, 'asked for nothing, it shows its help');
    const broken = { env: { SERVICE_TOKEN: `${ada.token.slice(0, 20)}\n${ada.token.slice(20)}` } };
    const { stderr: lines } = await fails(
      2,
      /The token of SERVICE_TOKEN holds a line feed\nCopy it/,
      ['usage'],
      broken,
    );
    assert.ok(!lines.includes(ada.token.slice(7, 20)));
    await fails(2, /ends in \/v1, .*\nLeave it out: http:\S+\d$/m, ['usage', '--base-url', `${strata.url}/v1/`]);
    await fails(2, /is no address of a service/, ['usage', '--base-url', 'localhost']);
    await fails(2, /names no repository/, ['repo', 'get', 'a/b/c']);
    await fails(2, /is no id/, ['token', 'get', '..']);
    await fails(1, /nothing listens there.*\n--base-url/, ['usage', '--base-url', 'http://127.0.0.1:9']);
    await fails(1, /^error: name: /, ['repo', 'create', '.git']);
  });

  test('prints requests with --debug, and no secret', async () => {
    const { code, stdout, stderr } = await cli.run(['repo', 'get', 'ada/none', '--debug']);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^GET http:\S+\/v1\/repos\/ada\/none 404 /);
    assert.match(stderr, /\n\s+at /);
    assert.ok(!stderr.includes(ada.token.slice(0, 20)));
    const created = await cli.run(['token', 'create', '--name', 'quiet', '--debug']);
    assert.ok(!created.stderr.includes(created.stdout.trim()));
  });

  test('ends quietly when its reader goes away', async () => {
    const shell = command.map((word) => `'${word}'`).join(' ');
    const script = `${shell} api GET /v1/openapi.json | head -c 1; echo " $?"`;
    const { stdout, stderr } = await cli.program(['bash', '-o', 'pipefail', '-c', script]);
    assert.deepEqual([stdout, stderr], ['{ 0\n', '']);
  });

  const full = skippedFor(existsSync('/dev/full') ? false : 'there is no /dev/full');
  test('says that standard output cannot be written, as on a full disk', full, async () => {
    const shell = command.map((word) => `'${word}'`).join(' ');
    for (const words of ['repo list', 'api GET /v1/openapi.json', '--help']) {
      const { code, stderr } = await cli.program(['sh', '-c', `${shell} ${words} >/dev/full`]);
      assert.deepEqual([code, stderr], [1, 'error: standard output cannot be written: the disk is full\n'], words);
    }
  });

  test('keeps several logins apart, warns of an open file, and quotes no line of a broken one', async () => {
    const own = await another({ SERVICE_BASE_URL: '' });
    await mkdir(path.dirname(own.configFile), { recursive: true });
    const bob = await createAccount(strata, 'bob');
    const other = strata.url.replace('localhost', '127.0.0.1');
    const hosts = [
      `current = "${strata.url}"`,
      `[hosts."${strata.url}"]\ntoken = "${ada.token}"\nusername = "ada"`,
      `[hosts."${other}"]\ntoken = "${bob.token}"\nusername = "bob"`,
    ];
    await writeFile(own.configFile, hosts.join('\n'), { mode: 0o600 });
    assert.match(await own.done(['whoami']), /^account\tada\n/);
    assert.match(await own.done(['whoami', '--base-url', other]), /^account\tbob\n/);
    assert.match(await own.done(['--base-url', other, 'whoami']), /^account\tbob\n/);
    assert.equal((await own.run(['whoami', '--base-url', 'http://127.0.0.1:9'])).code, 3);
    const overridden = await own.done(['repo', 'list', '--json'], { env: { SERVICE_TOKEN: bob.token } });
    assert.deepEqual(JSON.parse(overridden).repositories, []);
    await chmod(own.configFile, 0o644);
    const warned = await own.run(['whoami']);
    assert.match(warned.stderr, /^warning: .*other people can use it \(mode 644\): chmod 600/);
    assert.equal((await own.run(['logout'])).code, 0);
    assert.equal((await stat(own.configFile)).mode & 0o777, 0o600);
    const left = await readFile(own.configFile, 'utf8');
    assert.ok(!left.includes(ada.token) && left.includes(bob.token));
    assert.match(await own.done(['whoami']), /^account\tbob\n/);
    await writeFile(own.configFile, `token = "${bob.token}`);
    const broken = await own.run(['whoami', '--debug']);
    assert.deepEqual([broken.code, broken.stderr.includes(bob.token.slice(7, 20))], [2, false], broken.stderr);
    assert.match(broken.stderr, /is not TOML \(line 1\)/);
  });

  test('audit token shows what a token was allowed and what it did, also after its end', async () => {
    const made = await json<{ id: string }>(['token', 'create', '--name', 'watched', '--grants', 'API_REPOS_READ']);
    await text(['token', 'delete', made.id]);
    assert.match(
      await text(['audit', 'token', made.id]),
      /^\S+\tallowed API_REPOS_READ\tall\t\n\S+\trevoked\tall\t\n$/,
    );
    const answer = await json<object>(['audit', 'token', made.id, '--limit', '1']);
    assert.deepEqual(answer, await bodyOf(`/v1/access-tokens/${made.id}/activity?limit=1`));
    await fails(1, /not found/i, ['audit', 'token', UNKNOWN]);
  });

  test('audit access shows who could read a repository, and who did', async () => {
    const path = 'audited';
    await text(['repo', 'create', path]);
    const could = await json<{ subjects: readonly { kind: string }[] }>(['audit', 'access', path]);
    assert.ok(could.subjects.some(({ kind }) => kind === 'user'));
    assert.match(await text(['audit', 'access', path]), /^user\t\S+\tada\tALL\tALL_REPO\t\S+\n/);
    const did = await json<{ accesses: readonly object[]; not_metered: readonly string[] }>([
      ...['audit', 'access', path, '--did'],
    ]);
    assert.deepEqual(did.accesses, []);
    assert.ok(did.not_metered.includes('commits'));
    await fails(2, /--at tells who could/, ['audit', 'access', path, '--at', '2026-11-21T10:00:00Z', '--did']);
    await fails(2, /--limit is for --did/, ['audit', 'access', path, '--limit', '1']);
    await fails(1, /did not exist at this moment/, ['audit', 'access', path, '--at', '2001-01-01T00:00:00Z']);
  });

  test('audit replay rebuilds the account from an export, and tells whether the service shows the same', async () => {
    await cli.done(['repo', 'create', 'recorded', '--description', 'Two lines\u2028in one']);
    const entries = (await shared.log.since()).filter((event) => event.isRecord && event.accountId === ada.id);
    const lines = entries.map((entry, sequence) => canonicalJson({ entry: entryOf(entry, sequence), leaf: '' }));
    const at = (entries.at(-1)?.occurredAt ?? '').replace('Z', '+00:00');
    const file = path.join(cli.home, 'log.ndjson');
    await writeFile(file, `${lines.join('\n')}\n`);
    const replay = ['audit', 'replay', file];
    const state = await bodyOf(`/v1/account/state?at=${encodeURIComponent(at)}`);
    assert.deepEqual(await json([...replay, '--at', at]), state);
    const { digest } = state as { digest: string };
    const shown = `entries\t${lines.length}\nlast entry\t${entries.at(-1)?.occurredAt}\ndigest\t${digest}\n`;
    assert.equal(await text(replay), shown);
    const same = await cli.run([...replay, '--at', at, '--compare', strata.url]);
    assert.deepEqual([same.code, same.stdout], [0, shown], same.stderr);
    assert.match(same.stderr, /shows the same account\n$/);
    await writeFile(file, `${lines.join('\n').replace('Two lines', 'One line')}\n`);
    const other = await cli.run([...replay, '--at', at, '--compare', strata.url]);
    assert.equal(other.code, 1);
    assert.match(other.stderr, new RegExp(`shows another account: its digest is ${digest}`));
    await writeFile(file, `${lines.toSpliced(2, 1).join('\n')}\n`);
    await fails(1, /log\.ndjson: Line 3: Entry 3 is not 2\nstrata audit verify/, replay);
    await fails(1, /no account yet/, [...replay, '--at', '2020-01-01T00:00:00Z']);
    await fails(2, /yesterday is no RFC 3339 time/, [...replay, '--at', 'yesterday']);
    await fails(1, /cannot be read: ENOENT/, ['audit', 'replay', `${file}.none`]);
  });

  test('audit lists, exports and verifies the log of the account, and watches its checkpoints', async () => {
    const listed = await json<{ events: readonly { entry: { type: string } }[] }>(['audit', 'log', '--limit', '3']);
    assert.equal(listed.events.length, 3);
    assert.match(await text(['audit', 'log', '--type', 'AccountCreated']), /^\d+\t\S+\tAccountCreated\taccount-/m);
    await fails(1, /since: Expected an RFC 3339 time/, ['audit', 'log', '--since', 'yesterday']);
    const cwd = path.join(cli.home, 'work');
    assert.match(await text(['audit', 'watch', '--folder', 'kept'], { cwd }), /\/log\/\S+: \d+ entries\n$/);
    const { size } = await json<{ size: number }>(['audit', 'watch', '--folder', 'kept'], { cwd });
    await text(['repo', 'create', 'watched']);
    assert.match(await text(['audit', 'watch', '--folder', 'kept'], { cwd }), new RegExp(`continue the ${size} kept`));
    assert.match(await text(['audit', 'export', 'log.ndjson'], { cwd }), /^Saved \d+ bytes in .*log\.ndjson\n$/);
    const { bytes } = await json<{ bytes: number }>(['audit', 'export', 'slice', '--since', '2026-01-01T00:00:00Z'], {
      cwd,
    });
    assert.equal((await stat(path.join(cwd, 'slice'))).size, bytes);
    assert.equal((await stat(path.join(cwd, 'slice'))).mode & 0o777, 0o600, 'it holds personal data');
    const proving = ['--keys', 'kept/keys', '--checkpoint', `kept/${size}.txt`];
    assert.match(
      await text(['audit', 'verify', 'log.ndjson', ...proving], { cwd }),
      /^verified \d+ entries: the whole log/,
    );
    const verified = await json<object>(['audit', 'verify', 'slice', ...proving], { cwd });
    assert.deepEqual({ ...verified, signed: true, whole: false }, verified);
    const file = path.join(cwd, 'log.ndjson');
    await writeFile(file, (await readFile(file, 'utf8')).replace('"version":1', '"version":2'));
    await fails(1, /log\.ndjson, line 1: its leaf is not the hash of its entry/, ['audit', 'verify', 'log.ndjson'], {
      cwd,
    });
    await fails(2, /none cannot be read: ENOENT/, ['audit', 'verify', 'none'], { cwd });
    const unsigned = await cli.run(['audit', 'verify', 'slice'], { cwd });
    assert.equal(unsigned.code, 2);
    assert.match(
      unsigned.stdout,
      /^undecided \d+ entries[^]*\nsigned +no: give the keys of the service with --keys\n$/,
    );
    assert.match(unsigned.stderr, /Nothing is wrong with it, and it is not verified/);
    const narrower = ['audit', 'verify', 'slice', ...proving, '--since', '2026-02-01T00:00:00Z'];
    await fails(1, /it proves the log from 2026-01-01T00:00:00\.000Z on, and not from 2026-02-01/, narrower, { cwd });
    const [key = ''] = (await readFile(path.join(cwd, 'kept/keys'), 'utf8')).split('\n');
    const revoking = (...args: readonly string[]) => ['audit', 'verify', 'slice', ...proving, ...args];
    await fails(2, /Give --revoke and --after together/, revoking('--revoke', key), { cwd });
    await fails(2, /Give --revoke and --after together/, revoking('--after', '3'), { cwd });
    await fails(2, /--revoke is no key/, revoking('--revoke', 'key', '--after', '3'), { cwd });
    await fails(2, /--after/, revoking('--revoke', key, '--after', '1.5'), { cwd });
    await fails(1, /was revoked after/, revoking('--revoke', key, '--after', `${size}`), { cwd });
    await fails(1, /none\/log cannot be written: ENOENT/, ['audit', 'export', 'none/log'], { cwd });
    assert.deepEqual(
      (await readdir(cwd)).filter((name) => name.startsWith('.')),
      [],
      'no partial file is left',
    );
  });

  test('audit watch keeps the proof when the service shows a log that does not continue what it signed', async () => {
    const cwd = path.join(cli.home, 'work');
    await cli.done(['audit', 'watch', '--folder', 'forked'], { cwd });
    const folder = path.join(cwd, 'forked');
    const [kept = ''] = (await readdir(folder)).filter((name) => name.endsWith('.txt'));
    const note = await readFile(path.join(folder, kept), 'utf8');
    // Imitates a service that signed another history of that size before.
    const [origin = '', size = '', root = ''] = note.split('\n');
    const otherRoot = Buffer.from(root, 'base64').reverse().toString('base64');
    await writeFile(path.join(folder, kept), note.replace(root, otherRoot));
    await fails(
      1,
      /THE LOG WAS CHANGED: its \d+ entries are not those that it had/,
      ['audit', 'watch', '--folder', 'forked'],
      { cwd },
    );
    await text(['repo', 'create', 'forking']);
    await fails(1, /THE LOG WAS CHANGED: nothing proves/, ['audit', 'watch', '--folder', 'forked'], { cwd });
    const larger = `${Number(size) + 1_000}`;
    await writeFile(path.join(folder, `${larger}.txt`), note.replace(`\n${size}\n`, `\n${larger}\n`));
    await fails(1, /THE LOG WAS CHANGED: it has \d+ entries, and had/, ['audit', 'watch', '--folder', 'forked'], {
      cwd,
    });
    // The operator of a service whose store holds that checkpoint accepts the loss, as after a restore.
    const stored = path.join(shared.env['STRATA_LAYERS_DIR'] ?? '', 'checkpoints', ada.id);
    await writeFile(path.join(stored, larger.padStart(16, '0')), note.replace(`\n${size}\n`, `\n${larger}\n`));
    const lost = { id: ada.id, username: 'ada', size: Number(larger), root };
    const listing = ['log', 'checkpoints', 'list', '--all'];
    assert.deepEqual(await admin(strata, listing), { checkpoints: [lost] });
    const accepting = ['log', 'checkpoints', 'accept-loss', '--username', 'ada', '--reason', 'The disk died'];
    const asked = await tryAdmin(strata, accepting);
    assert.match(asked.stderr, /Nothing was done\. Add --yes/);
    assert.deepEqual(await admin(strata, [...accepting, '--yes']), { accepted: [lost] });
    assert.deepEqual(await admin(strata, listing), { checkpoints: [] });
    const accepted = /THE LOG WAS CHANGED: it has .*; entry \d+ \(LogTailLost\) accepts that loss: "The disk died"/;
    await fails(1, accepted, ['audit', 'watch', '--folder', 'forked'], { cwd });
    await writeFile(
      path.join(folder, `${larger}.txt`),
      note.replace(origin, origin.replace(/^[^/]+/, 'other.example')),
    );
    await fails(1, /THE LOG WAS CHANGED: the checkpoint is of/, ['audit', 'watch', '--folder', 'forked'], { cwd });
    const evidence = (await readdir(folder)).filter((name) => name.startsWith('contradicting-'));
    assert.equal(evidence.length, 5);
    const keys = await readFile(path.join(folder, 'keys'), 'utf8');
    await mkdir(path.join(cwd, 'unkeyed'));
    await writeFile(
      path.join(cwd, 'unkeyed/keys'),
      keys.replace(/\+\w/, (digit) => (digit === '+0' ? '+1' : '+0')),
    );
    await fails(1, /THE LOG WAS CHANGED: none of the given keys signed it/, ['audit', 'watch', '--folder', 'unkeyed'], {
      cwd,
    });
  });

  test('was tried here in every subcommand, for people and as JSON', () => {
    // These are tried by the installed command line, and git-credential has no JSON.
    const elsewhere = ['login', 'logout', 'git-credential'];
    const wanted = COMMANDS.filter(({ name }) => !elsewhere.includes(name)).flatMap(({ name }) => [
      name,
      `${name} --json`,
    ]);
    assert.deepEqual(
      wanted.filter((name) => !covered.has(name)),
      [],
    );
  });
});
