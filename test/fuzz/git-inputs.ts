/** Requests of Git clients: ref advertisements, ls-refs, fetches and pushes, each right or changed. */
import { gzipSync } from 'node:zlib';
import { basicAuthorization, packet, ZERO } from '../support/git-wire.ts';
import type { Dice } from '../support/seeded.ts';
import type { Draft } from './heads.ts';
import { EMPTY, FILLED, type Making, PUSHED } from './making.ts';
import { hostileText, mutateBytes, mutateText } from './mutations.ts';
import { mutatePack } from './packs.ts';

/** A pkt-line's payload, or the four bytes of a special packet. */
type Line = Buffer | '0000' | '0001' | '0002';

const WRONG_LENGTHS: readonly string[] = [
  '0003',
  '0004',
  '0005',
  'fff0',
  'fff1',
  'ffff',
  'FFFF',
  '+00a',
  'zzzz',
  '0x10',
];

function gitDraft(making: Making, service: string, body: Buffer | null, more: Draft['headers'] = []): Draft {
  const { dice, account, isMutated } = making;
  const name = service === 'git-receive-pack' ? PUSHED : dice.pick([FILLED, FILLED, FILLED, EMPTY, PUSHED]);
  const odd = isMutated && dice.chance(0.05);
  const place = odd ? encodeURI(cleaned(mutateText(dice, name))) : name;
  const repository = `/r/${account.username}/${place}.git`;
  const asOf = isMutated && dice.chance(0.03) ? `@${encodeURIComponent(cleaned(hostileText(dice)))}` : '';
  const headers: Draft['headers'] = [['Authorization', basicAuthorization(account)], ...more];
  if (body === null) {
    const asked = odd ? encodeURIComponent(cleaned(hostileText(dice))) : service;
    const target = `/r/${account.username}/${place}${asOf}.git/info/refs?service=${asked}`;
    return { method: 'GET', target, headers, body };
  }
  const type: readonly [string, string] = ['Content-Type', `application/x-${service}-request`];
  return { method: 'POST', target: `${repository}/${service}`, headers: [...headers, type], body };
}

/** `encodeURI` refuses lone surrogates. */
function cleaned(text: string): string {
  return text.toWellFormed();
}

function version(dice: Dice): Draft['headers'] {
  return [['Git-Protocol', `version=${dice.pick([0, 1, 2, 2, 2])}`]];
}

export function advertisement(making: Making): Draft {
  const { dice } = making;
  return gitDraft(making, dice.pick(['git-upload-pack', 'git-receive-pack']), null, version(dice));
}

export function lsRefs(making: Making): Draft {
  const { dice, scene, isMutated } = making;
  const prefixes = Array.from({ length: dice.below(4) }, () => `ref-prefix ${refName(making)}`);
  const asked = [...pickSome(dice, ['peel', 'symrefs', 'unborn']), ...prefixes];
  const lines: Line[] = [text('command=ls-refs'), ...capabilities(dice), '0001', ...asked.map(text), '0000'];
  if (isMutated && dice.chance(0.1)) lines.splice(-1, 0, text(`ref-prefix ${dice.pick(scene.refs)}`));
  return fetching(making, lines, [['Git-Protocol', 'version=2']]);
}

export function fetchV2(making: Making): Draft {
  const { dice } = making;
  const words = pickSome(dice, ['thin-pack', 'no-progress', 'ofs-delta', 'include-tag', 'wait-for-done']);
  const lines: Line[] = [text('command=fetch'), ...capabilities(dice), '0001'];
  const asked = [...words, ...wantsAndHaves(making), ...(dice.chance(0.7) ? ['done'] : [])];
  return fetching(making, [...lines, ...asked.map(text), '0000'], [['Git-Protocol', 'version=2']]);
}

export function fetchV0(making: Making): Draft {
  const { dice } = making;
  const [first = '', ...others] = wantsAndHaves(making);
  const chosen = ['side-band-64k', 'ofs-delta', 'thin-pack', 'multi_ack_detailed', 'no-done', 'filter', 'shallow'];
  const lines: Line[] = [text([first, ...pickSome(dice, chosen)].join(' '))];
  const isAfter = (line: string): boolean => line.startsWith('have');
  lines.push(...others.filter((line) => !isAfter(line)).map(text), '0000', ...others.filter(isAfter).map(text));
  lines.push(...(dice.chance(0.8) ? [text('done')] : ['0000' as const]));
  return fetching(making, lines, dice.chance(0.5) ? [] : [['Git-Protocol', 'version=1']]);
}

function fetching(making: Making, lines: readonly Line[], headers: Draft['headers']): Draft {
  const { dice } = making;
  const body = wire(making, lines);
  if (!dice.chance(0.15)) return gitDraft(making, 'git-upload-pack', body, headers);
  return gitDraft(making, 'git-upload-pack', gzipped(making, body), [...headers, ['Content-Encoding', 'gzip']]);
}

/** A body in gzip, changed before or after it was compressed. */
function gzipped({ dice, isMutated }: Making, body: Buffer): Buffer {
  if (!isMutated) return gzipSync(body);
  const bomb = dice.chance(0.01) ? Buffer.alloc(1 + dice.below(40 * 2 ** 20)) : Buffer.alloc(0);
  const packed = gzipSync(Buffer.concat([body, bomb]), { level: 1 });
  return dice.chance(0.5) ? packed : mutateBytes(dice, packed);
}

/** A list of commands with its pack. */
export function push(making: Making): Draft {
  const { dice, scene, isMutated } = making;
  const chosen = pickSome(dice, [
    'report-status',
    'report-status-v2',
    'side-band-64k',
    'quiet',
    'atomic',
    'delete-refs',
  ]);
  const options = dice.chance(0.2) ? ['push-options'] : [];
  const words = [...chosen, ...options, 'agent=fuzz/1', 'object-format=sha1'].join(' ');
  const commands = Array.from({ length: 1 + dice.below(isMutated ? 5 : 2) }, () => command(making));
  const lines: Line[] = commands.map((line, index) => Buffer.from(index === 0 ? `${line}\0 ${words}\n` : `${line}\n`));
  if (isMutated && dice.chance(0.1)) lines.unshift(text(`shallow ${objectId(making)}`));
  lines.push('0000');
  if (options.length > 0) lines.push(text(isMutated ? hostileText(dice) : 'ci.skip'), '0000');
  const parts = dice.pick(scene.packs);
  const pack = isMutated && dice.chance(0.8) ? mutatePack(dice, parts) : parts.whole;
  const isListMutated = isMutated && dice.chance(0.4);
  const list = wire({ ...making, isMutated: isListMutated }, lines);
  const body = Buffer.concat([list, dice.chance(0.9) ? pack : Buffer.alloc(0)]);
  if (!dice.chance(0.1)) return gitDraft(making, 'git-receive-pack', body);
  return gitDraft(making, 'git-receive-pack', gzipped(making, body), [['Content-Encoding', 'gzip']]);
}

function command(making: Making): string {
  const { dice, isMutated } = making;
  const ref = isMutated && dice.chance(0.2) ? hostileText(dice) : `refs/heads/pushed-${dice.below(500)}`;
  const before = isMutated && dice.chance(0.2) ? objectId(making) : ZERO;
  const after =
    isMutated && dice.chance(0.2) ? dice.pick([ZERO, objectId(making)]) : dice.pick(making.scene.objects.commit);
  return `${before} ${after} ${ref}`;
}

function wantsAndHaves(making: Making): readonly string[] {
  const { dice, scene, isMutated } = making;
  const { commit, tree, tag } = scene.objects;
  const lines = [`want ${dice.pick([...commit, ...tag])}`];
  for (let more = dice.below(3); more > 0; more -= 1)
    lines.push(`want ${isMutated ? objectId(making) : dice.pick(commit)}`);
  for (let more = dice.below(4); more > 0; more -= 1)
    lines.push(`have ${isMutated ? objectId(making) : dice.pick(commit)}`);
  if (dice.chance(0.15)) lines.push(`filter ${dice.pick(['blob:none', 'tree:0', 'tree:2', 'blob:limit=1k'])}`);
  if (dice.chance(0.1)) lines.push(`deepen ${1 + dice.below(5)}`);
  if (!isMutated) return lines;
  if (dice.chance(0.1))
    lines.push(
      `filter ${dice.pick(['combine:tree:1+blob:none', `sparse:oid=${dice.pick(tree)}`, 'tree:99999999999', hostileText(dice)])}`,
    );
  if (dice.chance(0.1)) lines.push(`shallow ${objectId(making)}`);
  if (dice.chance(0.1)) lines.push(`deepen ${dice.pick(['0', '-1', '2147483647', '99999999999', 'x'])}`);
  if (dice.chance(0.1)) lines.push(`deepen-since ${dice.pick(['0', '1700000005', '-1', '99999999999999', 'x'])}`);
  if (dice.chance(0.1)) lines.push(`deepen-not ${refName(making)}`, 'deepen-relative');
  if (dice.chance(0.05)) lines.push(hostileText(dice));
  return lines;
}

function objectId({ dice, scene }: Making): string {
  const { commit, tree, blob, tag } = scene.objects;
  if (dice.chance(0.8)) return dice.pick([...commit, ...tree, ...blob, ...tag]);
  return dice.pick([
    ZERO,
    'f'.repeat(40),
    'F'.repeat(40),
    '0'.repeat(64),
    'x'.repeat(40),
    '',
    dice.pick(commit).slice(0, 39),
  ]);
}

function refName({ dice, scene, isMutated }: Making): string {
  return isMutated && dice.chance(0.3) ? hostileText(dice) : dice.pick(scene.refs);
}

function capabilities(dice: Dice): readonly Line[] {
  return pickSome(dice, ['agent=fuzz/1', 'object-format=sha1', 'server-option=x']).map(text);
}

function pickSome(dice: Dice, words: readonly string[]): string[] {
  return words.filter(() => dice.chance(0.5));
}

function text(line: string): Buffer {
  // A pkt-line holds no more (gitprotocol-common(5)).
  return Buffer.from(`${line}\n`).subarray(0, 65_516);
}

/** Writes the lines; when the request is changed, some are dropped, repeated, swapped, changed or of a wrong length. */
function wire({ dice, isMutated }: Making, lines: readonly Line[]): Buffer {
  const written = lines.map((line): Buffer => (typeof line === 'string' ? Buffer.from(line) : packet(line)));
  if (!isMutated) return Buffer.concat(written);
  for (let rounds = 1 + dice.below(3); rounds > 0; rounds -= 1) mutateLines(dice, written);
  const body = Buffer.concat(written);
  return dice.chance(0.1) ? mutateBytes(dice, body) : body;
}

function mutateLines(dice: Dice, lines: Buffer[]): void {
  const at = dice.below(lines.length);
  const line = lines[at] ?? Buffer.alloc(0);
  switch (dice.below(7)) {
    case 0:
      lines.splice(at, 1);
      return;
    case 1:
      lines.splice(at, 0, line);
      return;
    case 2:
      lines.push(...lines.splice(at, 1));
      return;
    case 3:
      lines.splice(at, 0, Buffer.from(dice.pick(['0000', '0001', '0002', '0004'])));
      return;
    case 4:
      lines[at] = Buffer.concat([Buffer.from(dice.pick(WRONG_LENGTHS)), line.subarray(4)]);
      return;
    default:
      lines[at] = packet(mutateBytes(dice, line.subarray(4)).subarray(0, 65_516));
  }
}
