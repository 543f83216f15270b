/**
 * What people do in the simulated year, chosen by dice, and what must hold after each of it.
 *
 * Invariants: whatever the service is asked for is done to the oracle as well. The worker works at the same time as
 * people do, on some days.
 */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { parseKeys } from '../../../apps/verifier/checkpoint.ts';
import { decideAccount } from '../../../core/account/decide.ts';
import { accounts } from '../../../core/account/evolve.ts';
import { sessionEpochOf } from '../../../core/account/state.ts';
import { type AccountId, plusMs, type RepositoryId, type Timestamp, uuid } from '../../../core/kernel/ids.ts';
import { ACCOUNT_CLOSED_SPAN_MS } from '../../../core/kernel/limits.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import { execute } from '../../../core/runtime/execute.ts';
import { recordSignIn } from '../../../core/use-cases/signing-in/sign-in.ts';
import { accepted, newAccount, newToken } from '../../support/accounts.ts';
import type { Ending } from '../../support/cleanup.ts';
import { kept, verifyText } from '../../support/exported-log.ts';
import { filesBelow } from '../../support/files-below.ts';
import { CAUSE } from '../../support/node.ts';
import { assertCloneIs, momentIn } from '../../support/past-clones.ts';
import type { Dice } from '../../support/seeded.ts';
import { api, git, gitUrl, newWorkTree } from '../../support/strata.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { listingOf, type OracleRef, OracleRepository, type OracleState, reachedBy } from './oracle.ts';
import type { YearService } from './service.ts';

/** Few, so that no retention passes unseen between two turns. */
export const TURN_DAYS = 3;
const DAY_MS = 24 * 60 * 60_000;
const HOUR_MS = 60 * 60_000;
const BRANCHES = ['main', 'a', 'b', 'c', 'd'].map((name) => `refs/heads/${name}`);
const TAGS = ['one', 'two'].map((name) => `refs/tags/${name}`);
const REPOSITORIES_MAX = 4;
const NAMES = ['ada', 'bob', 'cleo'];
/** Two accounts are closed at the one turn; one of them is reopened at the other, and the other one erased. */
const [CLOSED_AT, REOPENED_AT] = [30, 33];
const EVENT = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/;

interface YearAccount {
  readonly id: AccountId;
  readonly username: string;
  readonly token: string;
  status: 'open' | 'closed' | 'erased';
  readonly owned: OracleRepository[];
  readonly checkpoints: string[];
}

type Action = (account: YearAccount, repository: OracleRepository) => Promise<void>;

export class Year {
  readonly counts: Record<string, number> = {};
  readonly #ending: Ending;
  readonly #service: YearService;
  readonly #dice: Dice;
  readonly #work: string;
  readonly #accounts: YearAccount[] = [];
  readonly #commits: string[] = [];
  #made = 0;

  private constructor(ending: Ending, service: YearService, dice: Dice, work: string) {
    this.#ending = ending;
    this.#service = service;
    this.#dice = dice;
    this.#work = work;
  }

  static async begin(ending: Ending, service: YearService, dice: Dice): Promise<Year> {
    const year = new Year(ending, service, dice, await newWorkTree(ending));
    for (const username of NAMES) {
      const id = await newAccount(service.context, username, 'PLATFORM');
      const { secret: token } = await newToken(service.context, id);
      const account: YearAccount = { id, username, token, status: 'open', owned: [], checkpoints: [] };
      year.#accounts.push(account);
      await year.#create(account);
      await year.#create(account);
    }
    return year;
  }

  /** Some days, with what people do at some times of them, and the work of the service. */
  async turn(turn: number): Promise<void> {
    const { dice, service } = { dice: this.#dice, service: this.#service };
    const end = service.aheadMs() + TURN_DAYS * DAY_MS;
    const open = this.#accounts.filter(({ status }) => status === 'open');
    const meanwhile = dice.chance(0.2) ? service.work() : null;
    for (let left = dice.below(4); left > 0; left -= 1) {
      service.advance(dice.below(DAY_MS / 2));
      await this.#act(dice.pick(open));
    }
    await meanwhile;
    service.advance(dice.below(DAY_MS / 4));
    await service.work();
    if (turn % 2 === 0) await this.#signIn(dice.pick(open));
    if (turn % 3 === 0) await this.#checkSome(open);
    if (turn % 6 === 0) for (const account of open) await this.#assertStorage(account);
    if (turn % 10 === 0) for (const account of open) await this.#keepCheckpoint(account);
    if (turn % 15 === 0) await service.restart();
    await this.#closeOrReopen(turn);
    service.advance(end - service.aheadMs());
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  #api(account: YearAccount, method: string, target: string, body?: unknown) {
    return api(this.#service, account.token, method, target, body);
  }

  async #act(account: YearAccount): Promise<void> {
    const { dice } = { dice: this.#dice };
    const living = account.owned.filter(({ status }) => status === 'open');
    if (living.length === 0 || (living.length < REPOSITORIES_MAX && dice.chance(0.05))) return this.#create(account);
    const push: Action = (...of) => this.#push(...of);
    const actions: readonly (readonly [string, Action, number])[] = [
      ['push', push, 8],
      ['force', (...of) => this.#force(...of), 5],
      ['delete-branch', (...of) => this.#deleteRef(...of), 4],
      ['tag', (...of) => this.#tag(...of), 2],
      ['default-branch', (...of) => this.#changeDefaultBranch(...of), 1],
      ['restore', (...of) => this.#restore(...of), 4],
      ['purge', (...of) => this.#purge(...of), 1],
      ['delete', (...of) => this.#delete(...of), 2],
      ['undelete', (of) => this.#undelete(of), 2],
    ];
    const [name, action] = dice.pick(actions.flatMap((one) => Array.from({ length: one[2] }, () => one)));
    this.#count(name);
    await action(account, dice.pick(living));
  }

  async #create(account: YearAccount): Promise<void> {
    this.#made += 1;
    const name = `repository-${this.#made}`;
    const created = await this.#api(account, 'POST', '/v1/repositories', { name, default_branch: 'main' });
    assert.equal(created.status, 201, created.text);
    const { id } = created.body as { readonly id: string };
    account.owned.push(new OracleRepository(uuid<RepositoryId>(id), name, () => this.#service.now()));
  }

  /** Makes some commits on top of another, by one process. */
  async #commit(parent: string | undefined): Promise<string> {
    const dice = this.#dice;
    const count = 1 + dice.below(3);
    let stream = '';
    for (let n = 1; n <= count; n += 1) {
      const text = `${dice.below(2 ** 30)}\n`.repeat(1 + dice.below(400));
      const message = `Change ${dice.below(2 ** 30)}`;
      const from = n > 1 ? `from :${n - 1}\n` : parent === undefined ? '' : `from ${parent}\n`;
      stream += `commit refs/scratch/${this.#commits.length}\nmark :${n}\n`;
      stream += `committer A <a@example.org> 1790000000 +0000\ndata ${message.length}\n${message}\n${from}`;
      stream += `M 100644 inline file-${dice.below(6)}\ndata ${text.length}\n${text}\n`;
    }
    const id = (await git(this.#work, ['fast-import', '--quiet', '--force'], `${stream}get-mark :${count}\n`)).trim();
    this.#commits.push(id);
    return id;
  }

  async #pushed(account: YearAccount, repository: OracleRepository, updates: ReadonlyMap<string, OracleRef | null>) {
    await repository.changed(async () => {
      const refspecs = [...updates].map(([ref, to]) => `+${to?.id ?? ''}:${ref}`);
      await git(this.#work, ['push', '--quiet', gitUrl(this.#service, account, repository.name), ...refspecs]);
      for (const [ref, to] of updates) repository.set(ref, to);
    });
  }

  async #push(account: YearAccount, repository: OracleRepository): Promise<void> {
    const branches = BRANCHES.filter((_, n) => n === 0 || this.#dice.chance(0.3));
    const updates = new Map<string, OracleRef>();
    for (const branch of branches) {
      updates.set(branch, { id: await this.#commit(repository.refs.get(branch)?.id), peeled: null });
    }
    await this.#pushed(account, repository, updates);
  }

  async #force(account: YearAccount, repository: OracleRepository): Promise<void> {
    const known = this.#commits.length > 0 && this.#dice.chance(0.5) ? this.#dice.pick(this.#commits) : undefined;
    const to = { id: await this.#commit(known), peeled: null };
    await this.#pushed(account, repository, new Map([[this.#dice.pick(BRANCHES), to]]));
  }

  async #deleteRef(account: YearAccount, repository: OracleRepository): Promise<void> {
    const refs = [...repository.refs.keys()];
    if (refs.length > 0) await this.#pushed(account, repository, new Map([[this.#dice.pick(refs), null]]));
  }

  async #tag(account: YearAccount, repository: OracleRepository): Promise<void> {
    const [branch] = [...repository.refs].filter(([ref]) => ref.startsWith('refs/heads/'));
    if (branch === undefined) return;
    const [, { id: peeled }] = branch;
    const header = `object ${peeled}\ntype commit\ntag t\ntagger A <a@example.org> 1790000000 +0000\n`;
    const id = (await git(this.#work, ['mktag'], `${header}\n${this.#dice.below(2 ** 30)}\n`)).trim();
    await this.#pushed(account, repository, new Map([[this.#dice.pick(TAGS), { id, peeled }]]));
  }

  async #changeDefaultBranch(account: YearAccount, repository: OracleRepository): Promise<void> {
    const branch = this.#dice.pick(BRANCHES).slice('refs/heads/'.length);
    await repository.changed(async () => {
      const target = `/v1/repos/${account.username}/${repository.name}`;
      const changed = await this.#api(account, 'PATCH', target, { default_branch: branch });
      assert.equal(changed.status, 200, changed.text);
      repository.defaultBranch = branch;
    });
  }

  /** A state of the repository and a moment of it, at most `spanMs` ago if there is one. */
  #moment(
    repository: OracleRepository,
    spanMs: number,
  ): { readonly state: OracleState; readonly at: Timestamp } | null {
    const now = this.#service.now();
    const since = plusMs(now, -this.#dice.below(spanMs));
    const states = repository.states.filter(({ from, until }) => (until ?? now) > since && (until ?? now) > from);
    const state = states.length === 0 ? null : this.#dice.chance(0.5) ? states[0] : this.#dice.pick(states);
    if (state === null || state === undefined) return null;
    const spans = Date.parse(state.until ?? now) - Date.parse(state.from);
    return { state, at: plusMs(state.from, this.#dice.below(spans)) };
  }

  async #restore(account: YearAccount, repository: OracleRepository): Promise<void> {
    const moment = this.#moment(repository, 60 * DAY_MS);
    if (moment === null || !moment.state.isThere) return;
    const { state, at } = moment;
    await repository.changed(async () => {
      const target = `/v1/repos/${account.username}/${repository.name}/restore`;
      const restored = await this.#api(account, 'POST', target, { at });
      if (restored.status === 410) {
        this.#count('restore-expired');
        assert.match(restored.text, EVENT);
        assert.ok(at < repository.keptSince(this.#service.now(), this.#service.retentionMs), `${at}: ${restored.text}`);
        return;
      }
      assert.equal(restored.status, 200, restored.text);
      repository.refs = new Map(state.refs);
    });
  }

  async #purge(account: YearAccount, repository: OracleRepository): Promise<void> {
    const deleted = account.owned.filter(({ status }) => status === 'deleted');
    const chosen = deleted.length > 0 && this.#dice.chance(0.3) ? this.#dice.pick(deleted) : repository;
    const purged = await this.#api(account, 'POST', `/v1/repositories/${chosen.id}/purge`, {});
    if (purged.status === 409) return this.#count('purge-lost');
    assert.equal(purged.status, 202, purged.text);
    chosen.purgedAt = this.#service.now();
    if (chosen.status === 'deleted') chosen.status = 'gone';
  }

  async #delete(account: YearAccount, repository: OracleRepository): Promise<void> {
    await repository.changed(async () => {
      const deleted = await this.#api(account, 'DELETE', `/v1/repos/${account.username}/${repository.name}`);
      assert.equal(deleted.status, 204, deleted.text);
      repository.status = 'deleted';
      repository.deletedAt = this.#service.now();
    });
  }

  async #undelete(account: YearAccount): Promise<void> {
    const away = account.owned.filter(({ status }) => status !== 'open');
    const deleted = away.filter(({ status }) => status === 'deleted');
    if (away.length === 0) return;
    const repository = this.#dice.pick(deleted.length > 0 && this.#dice.chance(0.7) ? deleted : away);
    const before = repository.status;
    const keptUntil = plusMs(repository.deletedAt ?? this.#service.now(), this.#service.retentionMs);
    await repository.changed(async () => {
      const answer = await this.#api(account, 'POST', `/v1/repositories/${repository.id}/restore`, {});
      if (answer.status === 410) {
        this.#count('undelete-expired');
        assert.match(answer.text, EVENT);
        assert.ok(before === 'gone' || this.#service.now() >= keptUntil, answer.text);
        repository.status = 'gone';
        return;
      }
      assert.equal(answer.status, 200, answer.text);
      // A repository without objects has nothing that could expire.
      if (before === 'gone') assert.equal(repository.refs.size, 0, 'what was purged or has expired came back');
      repository.status = 'open';
    });
    if (repository.status === 'open') await this.#assertNow(account, repository);
  }

  async #signIn({ id }: YearAccount): Promise<void> {
    const { context } = this.#service;
    const origin = { requestId: context.ids.next(), address: '', userAgent: null };
    await recordSignIn(context, origin, id, ['password']);
  }

  async #checkSome(open: readonly YearAccount[]): Promise<void> {
    const account = this.#dice.pick(open);
    const living = account.owned.filter(({ status }) => status === 'open');
    if (living.length === 0) return;
    const repository = this.#dice.pick(living);
    if (this.#dice.chance(0.3)) await this.#assertNow(account, repository);
    await this.#assertMoment(account, repository, this.#service.retentionMs);
    await this.#assertMoment(account, repository, 400 * DAY_MS);
  }

  #past(account: YearAccount, repository: OracleRepository) {
    const keptSince = repository.keptSince(this.#service.now(), this.#service.retentionMs);
    const url = (moment: string | null): string =>
      gitUrl(this.#service, account, moment === null ? repository.name : `${repository.name}@${moment}`);
    return { keptSince, url, mirror: this.#work };
  }

  /** The refs as of a moment stay in the record; a clone of it is whole, or refused by name. */
  async #assertMoment(account: YearAccount, repository: OracleRepository, spanMs: number): Promise<void> {
    const moment = this.#moment(repository, spanMs);
    if (moment === null) return;
    const { state, at } = moment;
    const target = `/v1/repos/${account.username}/${repository.name}/refs?at=${at}`;
    const listed = await this.#api(account, 'GET', target);
    assert.equal(listed.status, state.isThere ? 200 : 404, `${at}: ${listed.text}`);
    if (!state.isThere) return;
    const refs = [...state.refs]
      .map(([name, { id, peeled }]) => ({ name, target: id, peeled }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    assert.deepEqual(listed.body, { default_branch: state.defaultBranch, refs });
    const text = momentIn(this.#dice, { listed: '', from: at, until: plusMs(at, 1), event: null });
    const past = this.#past(account, repository);
    this.#count(`clone-${await assertCloneIs(this.#ending, past, text, { listed: listingOf(state), from: at })}`);
  }

  async #assertNow(account: YearAccount, repository: OracleRepository): Promise<void> {
    this.#count('clone-now');
    const url = gitUrl(this.#service, account, repository.name);
    assert.equal(await git(this.#work, ['ls-remote', '--symref', url]), listingOf(repository));
    const clone = path.join(await tempDir(this.#ending), 'clone.git');
    await git(this.#work, ['clone', '--quiet', '--mirror', url, clone]);
    await git(clone, ['fsck', '--full', '--strict']);
  }

  /** Every current layer is on disk, and the sum of their bytes is what the account is told. */
  async #assertStorage(account: YearAccount): Promise<void> {
    let bytes = 0;
    for (const { id } of account.owned) {
      const { state } = await this.#service.context.entities.reload(repositories, id);
      const { layers } = state.status === 'open' ? state : state.before;
      for (const { key, sizeBytes } of state.status === 'closed' && state.expired ? [] : layers) {
        const { size } = await stat(path.join(this.#service.layersDir, key));
        assert.equal(size, sizeBytes, key);
        bytes += size;
      }
    }
    const usage = await this.#api(account, 'GET', '/v1/account/usage');
    const { storage_bytes } = usage.body as { readonly storage_bytes: { readonly used: number } };
    assert.equal(storage_bytes.used, bytes);
  }

  async #keepCheckpoint(account: YearAccount): Promise<void> {
    const latest = await this.#api(account, 'GET', '/v1/account/checkpoints/latest');
    assert.equal(latest.status, 200, latest.text);
    account.checkpoints.push(latest.text);
  }

  async #closeOrReopen(turn: number): Promise<void> {
    const { context } = this.#service;
    const [, bob, cleo] = this.#accounts;
    if (bob === undefined || cleo === undefined) return;
    const decide = async ({ id }: YearAccount, command: Parameters<typeof decideAccount>[1]): Promise<void> => {
      accepted(
        await execute(context, accounts, id, { account: id, cause: CAUSE }, (state) => decideAccount(state, command)),
      );
    };
    const eraseAt = plusMs(this.#service.now(), ACCOUNT_CLOSED_SPAN_MS);
    if (turn === CLOSED_AT) {
      for (const account of [bob, cleo]) {
        await this.#keepCheckpoint(account);
        await decide(account, { type: 'CloseAccount', eraseAt });
        account.status = 'closed';
      }
    }
    if (turn === REOPENED_AT) {
      const { state: closed } = await context.entities.reload(accounts, bob.id);
      assert.ok(closed.status === 'closed');
      await decide(bob, { type: 'ReopenAccount', epoch: sessionEpochOf(closed), now: this.#service.now() });
      bob.status = 'open';
    }
    const { state } = await context.entities.reload(accounts, cleo.id);
    if (state.status === 'erased' && cleo.status !== 'erased') {
      cleo.status = 'erased';
      assert.equal((await this.#api(cleo, 'GET', '/v1/account/usage')).status, 401);
      for (const { id } of cleo.owned) assert.deepEqual(await this.#stored(id), []);
    }
  }

  async #stored(id: RepositoryId): Promise<readonly string[]> {
    const files = await filesBelow(this.#service.layersDir);
    return files.filter((file) => file.startsWith(`repositories/${id}/layers/`)).sort();
  }

  /** The retention passes over everything: only what refs reach is left, and nothing beyond it in storage. */
  async end(): Promise<void> {
    for (const spanMs of [this.#service.retentionMs + HOUR_MS, HOUR_MS, this.#service.retentionMs, 2 * HOUR_MS]) {
      this.#service.advance(spanMs + HOUR_MS);
      await this.#service.work();
    }
    await this.#service.restart();
    for (const account of this.#accounts) {
      if (account.status === 'open') await this.#assertStorage(account);
      for (const repository of account.owned) await this.#assertLeft(account, repository);
    }
  }

  async #assertLeft(account: YearAccount, repository: OracleRepository): Promise<void> {
    const { state } = await this.#service.context.entities.reload(repositories, repository.id);
    const layers = state.status === 'open' ? [...state.layers].map(({ key }) => key).sort() : [];
    assert.deepEqual(await this.#stored(repository.id), layers);
    if (account.status !== 'open' || state.status !== 'open') return;
    await this.#assertNow(account, repository);
    const reached = await reachedBy(this.#work, repository.refs);
    const past = repository.states.filter(({ isThere, from, until }) => isThere && until !== null && until > from);
    const some = past.filter(() => this.#dice.chance(8 / past.length));
    for (const { from, ...rest } of some) {
      const isReached = [...rest.refs.values()].every(({ id }) => reached.has(id));
      const of = { listed: listingOf(rest), from };
      const found = await assertCloneIs(this.#ending, this.#past(account, repository), from, of);
      assert.equal(found, isReached ? 'equal' : 'expired', `${repository.name} as of ${from}`);
      this.#count(`at-the-end-${found}`);
    }
  }

  /** Each log continues every checkpoint that was kept during the year, and the accounts can be rebuilt from it. */
  async assertExports(): Promise<void> {
    const keys = parseKeys(await (await fetch(`${this.#service.url}/.well-known/strata-log-keys`)).text());
    for (const account of this.#accounts.filter(({ status }) => status === 'open')) {
      const headers = { Authorization: `Bearer ${account.token}` };
      const exported = await fetch(`${this.#service.url}/v1/account/events/export`, { headers });
      assert.equal(exported.status, 200);
      const verified = await verifyText(await exported.text(), { keys, older: account.checkpoints.map(kept) });
      assert.ok(verified.isWhole);
    }
  }
}
