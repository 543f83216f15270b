/**
 * A random history of an account, as its use cases append it: repositories and their pushes, tokens, webhooks, buckets,
 * trust rules, sums of usage, deletions and undone ones. Every choice follows from the dice.
 */
import { streamName } from '../../core/kernel/envelope.ts';
import { type AccessTokenId, type AccountId, plusMs, type RepositoryId } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import { splitUpdates, updatesDigestText } from '../../core/repository/wide-updates.ts';
import { type Appender, digest, layer, newUuid } from './read-models.ts';
import { branch, moved, oid, tag } from './repository-history.ts';
import type { Dice } from './seeded.ts';

interface Known {
  readonly id: RepositoryId;
  name: string;
  isDeleted: boolean;
  readonly bucket: string | null;
  readonly layers: { readonly id: string; readonly size_bytes: number }[];
  epoch: number;
  revision: number;
  readonly refs: Map<string, string>;
}

const ref = (digit: number): string => digit.toString(16).padStart(64, 'a');

/** Appends the account's first events and `steps` random ones. */
export async function appendRandomAccount(append: Appender, dice: Dice, steps: number): Promise<AccountId> {
  const account = await append.account('ada');
  const stream = streamName('account', account);
  await append.append(streamName('username', 'ada'), account, 'Confirmed', { account });
  const repositories: Known[] = [];
  const tokens: AccessTokenId[] = [];
  const webhooks: string[] = [];
  const buckets: string[] = [];
  const rules: string[] = [];
  let number = 0;
  const own = (type: string, data: JsonObject) => append.append(stream, account, type, data);
  const living = () => repositories.filter(({ isDeleted }) => !isDeleted);

  const actions: readonly (readonly [number, () => Promise<unknown>])[] = [
    [2, () => createRepository()],
    [12, () => push(false)],
    [1, () => push(true)],
    [2, () => chooseBranch()],
    [1, () => deleteOrRestore()],
    [1, () => describe()],
    [1, () => rename()],
    [2, () => compact()],
    [2, () => token()],
    [1, () => webhook()],
    [1, () => bucket()],
    [1, () => rule()],
    [1, () => own('PlanChanged', { plan: dice.pick(['FREE', 'PRO']) })],
    [1, () => own('EmailChanged', { email_ref: ref((number += 1)), previous_claim: null })],
    [1, () => totp()],
    [1, () => usage()],
  ];
  const drawn = actions.flatMap(([weight, act]) => Array.from({ length: weight }, () => act));

  for (let step = 0; step < steps; step += 1) {
    number += 1;
    // Mostly forwards; sometimes a node's clock is behind.
    append.now = plusMs(append.now, dice.chance(0.1) ? -400 : dice.below(90) * 60_000);
    await dice.pick(drawn)();
  }
  return account;

  async function createRepository(): Promise<void> {
    const name = `project-${number}`;
    const storage_bucket_id = buckets.length > 0 && dice.chance(0.3) ? dice.pick(buckets) : null;
    const default_branch = dice.chance(0.5) ? 'trunk' : null;
    const id = await append.repository(account, name, { storage_bucket_id, default_branch });
    const initial = { isDeleted: false, bucket: storage_bucket_id, layers: [], epoch: 0, revision: -1 };
    repositories.push({ id, name, ...initial, refs: new Map() });
  }

  async function push(isWide: boolean): Promise<void> {
    if (living().length === 0) return;
    const repository = dice.pick(living());
    const { id, refs } = repository;
    const count = isWide ? 40 : 1 + dice.below(3);
    const names = Array.from({ length: count }, () =>
      dice.chance(0.2) ? tag(`v${dice.below(60)}`) : branch(`b${dice.below(60)}`),
    );
    const updates = [...new Set(names)].map((name) => {
      const before = refs.get(name);
      if (before !== undefined && dice.chance(0.3)) {
        refs.delete(name);
        return moved(name, oid(before), null);
      }
      const after = oid(`${number}${dice.below(9)}e`);
      refs.set(name, after);
      const peeled = name.startsWith('refs/tags/') && dice.chance(0.5) ? oid(`${number}f`) : null;
      return moved(
        name,
        before === undefined ? null : oid(before),
        after,
        peeled === null ? {} : { type: 'tag', peeled },
      );
    });
    const added = dice.chance(0.8) ? layer(dice.below(10_000)) : null;
    if (added !== null) repository.layers.push(added);
    const fields = { layer: added, received_bytes: dice.below(1_000), refused: 0 };
    repository.revision += 1;
    if (!isWide) {
      await append.push(account, id, { ...fields, updates });
      return;
    }
    const parts = streamName('refUpdates', newUuid());
    for (const { type, data } of splitUpdates(updates)) await append.append(parts, account, type, data);
    const sha256 = digest.sha256(updatesDigestText(updates));
    const named = { stream: parts, count: splitUpdates(updates).length, updates: updates.length, sha256 };
    if (dice.chance(0.3)) {
      // The push lost its race: its parts mean nothing.
      repository.revision -= 1;
      repository.layers.splice(added === null ? repository.layers.length : -1);
      for (const { ref: name, before, kind } of updates) {
        if (kind === 'create') refs.delete(name);
        else refs.set(name, before);
      }
      return;
    }
    await append.push(account, id, { ...fields, updates: [], parts: named });
  }

  async function chooseBranch(): Promise<void> {
    if (living().length === 0) return;
    const repository = dice.pick(living());
    repository.revision += 1;
    const data = { default_branch: `b${dice.below(9)}` };
    await append.append(streamName('repository', repository.id), account, 'DefaultBranchChanged', data);
  }

  async function describe(): Promise<void> {
    if (living().length === 0) return;
    const { id } = dice.pick(living());
    await own('RepositoryDescribed', { repository_id: id, description: `Ünï “${number}”` });
  }

  async function rename(): Promise<void> {
    if (living().length === 0) return;
    const repository = dice.pick(living());
    const previous = repository.name;
    repository.name = `renamed-${number}`;
    await own('RepositoryRenamed', { repository_id: repository.id, name: repository.name, previous_name: previous });
  }

  async function deleteOrRestore(): Promise<void> {
    if (repositories.length === 0) return;
    const repository = dice.pick(repositories);
    if (!repository.isDeleted) {
      await append.deleteRepository(account, repository.id, repository.name);
      repository.isDeleted = true;
    } else if (dice.chance(0.6)) {
      repository.name = `again-${number}`;
      const fields = { default_branch: null, size_bytes: 0, pushed_at: null };
      await append.restoreRepository(account, repository.id, repository.name, fields);
      repository.isDeleted = false;
    } else if (repository.layers.length > 0) {
      const layers = repository.layers.map(({ id, size_bytes }) => ({ id, size_bytes, current: true }));
      const data = { layers, reason: 'purge', shrink_epoch: repository.epoch + 1, compacted_at: null };
      await append.append(streamName('repository', repository.id), account, 'LayersExpired', data);
      repositories.splice(repositories.indexOf(repository), 1);
      return;
    }
    repository.revision += 1;
  }

  async function compact(): Promise<void> {
    const compactable = living().filter(({ layers }) => layers.length > 1);
    if (compactable.length === 0) return;
    const repository = dice.pick(compactable);
    const added = { ...layer(dice.below(9_000)), holds: 'refs' };
    repository.epoch += 1;
    await append.append(streamName('repository', repository.id), account, 'LayersCompacted', {
      revision: repository.revision,
      removed: repository.layers.map(({ id, size_bytes }) => ({ id, size_bytes })),
      added: [added],
      ...{ shrink_epoch: repository.epoch, clean: true },
    });
    repository.revision += 1;
    repository.layers.splice(0, repository.layers.length, added);
  }

  async function token(): Promise<void> {
    const [known] = tokens.length > 0 && dice.chance(0.5) ? [dice.pick(tokens)] : [];
    if (known === undefined) {
      if (dice.chance(0.3)) return exchanged();
      tokens.push(await append.token(account, `token ${number}`));
    } else if (dice.chance(0.5)) {
      const data = { name: `renamed ${number}`, expires_at: '2027-01-01T00:00:00.000Z' };
      await append.append(streamName('accessToken', known), account, 'AccessTokenUpdated', data);
    } else {
      await append.append(streamName('accessToken', known), account, 'AccessTokenRevoked', { reason: 'deleted' });
      tokens.splice(tokens.indexOf(known), 1);
    }
  }

  async function exchanged(): Promise<void> {
    const id = newUuid<AccessTokenId>();
    await append.append(streamName('accessToken', id), account, 'AccessTokenExchanged', {
      ...{ account, trust_rule_id: newUuid(), rule_epoch: 0, subject_ref: ref(number), scope: 'ALL_REPO' },
      ...{ grants: ['READ'], repository_ids: [], expires_at: '2027-01-01T00:00:00.000Z' },
      ...{ secret_hash: digest.sha256(id), token_prefix: 'strata_abcd' },
    });
    await append.append(streamName('accessToken', id), account, 'AccessTokenRevoked', { reason: 'deleted' });
  }

  async function webhook(): Promise<void> {
    const [known] = webhooks.length > 0 && dice.chance(0.6) ? [dice.pick(webhooks)] : [];
    if (known === undefined) {
      const id = newUuid();
      const refs = { url_ref: ref(number), secret_ref: ref(number + 1) };
      const settings = { events: ['push'], active: true, scope: 'ALL_REPO', repository_ids: [] };
      await own('WebhookCreated', { webhook_id: id, ...refs, ...settings });
      webhooks.push(id);
    } else if (dice.chance(0.7)) {
      const previous_valid_until = plusMs(append.now, 1_000);
      await own('WebhookSecretRotated', { webhook_id: known, secret_ref: ref(number), previous_valid_until });
    } else {
      await own('WebhookDeleted', { webhook_id: known });
      webhooks.splice(webhooks.indexOf(known), 1);
    }
  }

  async function bucket(): Promise<void> {
    if (buckets.length > 0 && dice.chance(0.6)) {
      const bucket_id = dice.pick(buckets);
      if (dice.chance(0.5)) await own('StorageBucketVerified', { bucket_id });
      else await own('StorageBucketVerificationFailed', { bucket_id, step: 'put', code: 'access-denied' });
      await own('DefaultBucketChanged', { bucket_id });
      return;
    }
    const id = newUuid();
    const refs = { place_ref: ref(number), access_ref: ref(number + 1) };
    await own('StorageBucketCreated', {
      bucket_id: id,
      name: `b${number}`,
      provider: 'S3',
      auth_mode: 'OIDC',
      ...refs,
    });
    buckets.push(id);
  }

  async function rule(): Promise<void> {
    const [known] = rules.length > 0 && dice.chance(0.6) ? [dice.pick(rules)] : [];
    if (known === undefined) {
      const id = newUuid();
      const allowed = { scope: 'ALL_REPO', grants: ['READ'], repository_ids: [] };
      const data = { rule_id: id, name: `rule ${number}`, issuer: 'https://issuer.example', ...allowed };
      await own('TrustRuleCreated', { ...data, conditions_ref: ref(number) });
      rules.push(id);
    } else if (dice.chance(0.7)) {
      await own('TrustRuleChanged', { rule_id: known, name: `rule ${number}`, removed_ref: null });
    } else {
      await own('TrustRuleDeleted', { rule_id: known, removed_ref: ref(1) });
      rules.splice(rules.indexOf(known), 1);
    }
  }

  async function totp(): Promise<void> {
    const token_id = newUuid();
    await own('TotpEnrolmentBegun', { token_id, name: `app ${number}`, seed_ref: ref(number) });
    if (dice.chance(0.5)) await own('TotpActivated', { token_id, step: number });
    else await own('MfaTokenDeleted', { token_id, removed_ref: ref(number) });
  }

  async function usage(): Promise<void> {
    const day = append.now.slice(0, 10);
    const transfer = [{ day, sent_bytes: dice.below(5_000), received_bytes: dice.below(5_000), by_reader: [] }];
    await append.append(streamName('usage', account), account, 'UsageRecorded', {
      ...{ day, through: null, transfer, webhook_attempts: 0, sign_in_failures: 0, details: null },
    });
  }
}
