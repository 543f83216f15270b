/**
 * A history of one repository, pushed by the real git over HTTP, and a mirror that the real git keeps beside it. Every
 * state is noted: what `git ls-remote` prints of the mirror, and the times for which it holds.
 *
 * Invariants: the moments come from a test clock, so no two events have the same time, and months pass in seconds.
 */
import path from 'node:path';
import { createGitObjectDatabase } from '../../adapters/git/object-database.ts';
import type { AccountId, EventId, Timestamp } from '../../core/kernel/ids.ts';
import { plusMs } from '../../core/kernel/ids.ts';
import { compactLayers } from '../../core/use-cases/compacting/compact-layers.ts';
import { dropUnreached } from '../../core/use-cases/compacting/drop-unreached.ts';
import { type FoundRepository, findRepositoryById } from '../../core/use-cases/repositories/repositories.ts';
import { type ApiFixture, createApiFixture, type TestToken } from './api-fixture.ts';
import { cleanUp, type Ending } from './cleanup.ts';
import { type GitFixture, startGit } from './git-fixture.ts';
import { layersIn } from './layers-in.ts';
import { createMemoryLayerStore } from './memory/layer-store.ts';
import { TEST_RETENTION_MS } from './past-repositories.ts';
import type { Dice } from './seeded.ts';
import { commitFile, git, newWorkTree } from './strata.ts';
import { tempDir } from './temp-dir.ts';

const NEVER = new AbortController().signal;
const BRANCHES = ['main', 'a', 'b', 'c'];
const DAY_MS = 24 * 60 * 60_000;

export interface PastState {
  /** What `git ls-remote --symref` printed of the mirror. */
  readonly listed: string;
  readonly from: Timestamp;
  /** Not included. */
  readonly until: Timestamp;
  /** The repository's last event. */
  readonly event: EventId | null;
}

export interface PastHistory {
  readonly fixture: ApiFixture;
  readonly git: GitFixture;
  readonly account: AccountId;
  readonly token: TestToken;
  readonly mirror: string;
  readonly states: readonly PastState[];
  /** How often each kind of step was made. */
  readonly counts: { readonly [Kind in Step | 'dropped']: number };
  /** Moments from here on must be shown whole. */
  readonly keptSince: Timestamp;
  url(moment: string | null, token?: TestToken): string;
  /** Makes a step of this kind, or of any. */
  step(dice: Dice, kind?: Step): Promise<void>;
  /** Pushes a commit of its own without history, and returns its id. */
  push(ref: string, content: string): Promise<string>;
  delete(ref: string): Promise<void>;
  /** Drops what no ref has reached within the retention. */
  drop(): Promise<void>;
  current(): Promise<FoundRepository>;
}

type Step = 'push' | 'force' | 'delete' | 'tag' | 'default-branch' | 'merge' | 'drop';
const STEPS: readonly Step[] = [
  ...(['push', 'push', 'push', 'push', 'force', 'force', 'delete', 'tag', 'default-branch'] as const),
  ...(['merge', 'drop'] as const),
];

export async function startPastHistory(ending: Ending): Promise<PastHistory> {
  const fixture = await createApiFixture();
  cleanUp(ending, () => fixture.close());
  const layers = layersIn(createMemoryLayerStore());
  const objects = await createGitObjectDatabase({
    ...{ directory: path.join(await tempDir(ending), 'cache'), layers, cacheBytesMax: 2 ** 30 },
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
  });
  cleanUp(ending, () => objects.close());
  const served = await startGit(fixture, { layers, objects });
  cleanUp(ending, () => served.close());
  const account = await fixture.account('ada');
  const token = await fixture.token(account);
  const { id } = await fixture.repository(account, 'past', 'main');
  fixture.clock.advance(1_000);
  const mirror = path.join(await tempDir(ending), 'mirror.git');
  await git(path.dirname(mirror), ['init', '--quiet', '--bare', '--initial-branch=main', mirror]);
  await git(mirror, ['config', 'receive.denyDeleteCurrent', 'ignore']);
  const parts = { fixture, layers, objects, served, account, token, mirror, work: await newWorkTree(ending) };
  return new History(parts, id);
}

interface Parts {
  readonly fixture: ApiFixture;
  readonly layers: ReturnType<typeof layersIn>;
  readonly objects: Awaited<ReturnType<typeof createGitObjectDatabase>>;
  readonly served: GitFixture;
  readonly account: AccountId;
  readonly token: TestToken;
  readonly mirror: string;
  readonly work: string;
}

class History implements PastHistory {
  readonly counts: Record<Step | 'dropped', number>;
  readonly states: PastState[] = [];
  keptSince: Timestamp;
  readonly #parts: Parts;
  readonly #id: FoundRepository['id'];
  readonly #commits: string[] = [];
  readonly #refs = new Map<string, string>();
  #defaultBranch = 'main';

  constructor(parts: Parts, id: FoundRepository['id']) {
    this.#parts = parts;
    this.#id = id;
    this.keptSince = parts.fixture.clock.now();
    this.counts = { push: 0, force: 0, delete: 0, tag: 0, 'default-branch': 0, merge: 0, drop: 0, dropped: 0 };
  }

  get fixture() {
    return this.#parts.fixture;
  }
  get git() {
    return this.#parts.served;
  }
  get account() {
    return this.#parts.account;
  }
  get token() {
    return this.#parts.token;
  }
  get mirror() {
    return this.#parts.mirror;
  }

  url(moment: string | null, token: TestToken = this.#parts.token): string {
    const url = new URL(this.#parts.served.url);
    url.username = 'ada';
    url.password = token.secret;
    return `${url.href}r/ada/past${moment === null ? '' : `@${moment}`}.git`;
  }

  async current(): Promise<FoundRepository> {
    const found = await findRepositoryById(this.fixture.context, this.account, this.#id);
    if (found === null) throw new Error('The repository is gone');
    return found;
  }

  async step(dice: Dice, kind: Step = dice.pick(STEPS)): Promise<void> {
    const { clock } = this.fixture;
    this.counts[kind] += 1;
    await this.#make(kind, dice);
    const listed = await git(this.mirror, ['ls-remote', '--symref', this.mirror]);
    const { entity } = await this.current();
    const from = clock.now();
    clock.advance(1 + dice.below(3 * DAY_MS));
    this.states.push({ listed, from, until: clock.now(), event: entity.lastEventId });
  }

  async #make(kind: Step, dice: Dice): Promise<void> {
    const branch = `refs/heads/${dice.pick(BRANCHES)}`;
    switch (kind) {
      case 'push':
        return this.#push(branch, await this.#commit(dice, this.#refs.get(branch)));
      case 'force':
        return this.#push(branch, await this.#commit(dice, this.#commits[dice.below(this.#commits.length)]));
      case 'delete':
        return this.#refs.has(branch) ? this.#push(branch, null) : undefined;
      case 'tag':
        return this.#tag(dice);
      case 'default-branch':
        return this.#changeDefaultBranch(dice.pick(BRANCHES));
      case 'merge':
        await compactLayers(this.#maintenance(), { account: this.account, repository: this.#id }, NEVER);
        return;
      case 'drop':
        return this.drop();
    }
  }

  async push(ref: string, content: string): Promise<string> {
    const { work } = this.#parts;
    const blob = (await git(work, ['hash-object', '-w', '--stdin'], content)).trim();
    const tree = (await git(work, ['mktree'], `100644 blob ${blob}\tfile\n`)).trim();
    const commit = (await git(work, ['commit-tree', '-m', content, tree])).trim();
    await this.#push(ref, commit);
    return commit;
  }

  async delete(ref: string): Promise<void> {
    await this.#push(ref, null);
  }

  async #commit(dice: Dice, parent: string | undefined): Promise<string> {
    const { work } = this.#parts;
    if (parent !== undefined) await git(work, ['reset', '--quiet', '--soft', parent]);
    const content = `${dice.below(2 ** 30)}\n`.repeat(1 + dice.below(300));
    const commit = await commitFile(work, `file-${dice.below(5)}`, content);
    this.#commits.push(commit);
    return commit;
  }

  async #push(ref: string, after: string | null): Promise<void> {
    const refspec = `+${after ?? ''}:${ref}`;
    await git(this.#parts.work, ['push', '--quiet', this.url(null), refspec]);
    await git(this.#parts.work, ['push', '--quiet', this.mirror, refspec]);
    if (after === null) this.#refs.delete(ref);
    else this.#refs.set(ref, after);
  }

  async #tag(dice: Dice): Promise<void> {
    const [target] = this.#refs.values();
    if (target === undefined) return;
    await git(this.#parts.work, ['tag', '--annotate', '--force', '--message', `${dice.below(2 ** 30)}`, 't', target]);
    await this.#push(`refs/tags/t${dice.below(3)}`, 'refs/tags/t');
  }

  async #changeDefaultBranch(branch: string): Promise<void> {
    if (branch === this.#defaultBranch) return;
    const body = { default_branch: branch };
    const answer = await this.fixture.request('PATCH', '/v1/repos/ada/past', this.token, { body });
    if (answer.statusCode !== 200) throw new Error(answer.body);
    await git(this.mirror, ['symbolic-ref', 'HEAD', `refs/heads/${branch}`]);
    this.#defaultBranch = branch;
  }

  async drop(): Promise<void> {
    const of = { account: this.account, repository: this.#id };
    const context = { ...this.#maintenance(), retentionMs: TEST_RETENTION_MS, notifiedTo: async () => null };
    if ((await dropUnreached(context, of, NEVER)) !== 'dropped') return;
    this.counts.dropped += 1;
    this.keptSince = plusMs(this.fixture.clock.now(), -TEST_RETENTION_MS);
  }

  #maintenance() {
    const { context } = this.fixture;
    return { ...context, layers: this.#parts.layers, objects: this.#parts.objects };
  }
}
