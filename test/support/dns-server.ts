/**
 * A small name server on the loopback interface, whose answers a test may change between two queries.
 *
 * Invariants: it answers A and AAAA queries over UDP with a time to live of zero. For an alias it answers as a
 * resolver does: the CNAME record and the addresses of the target. It records every query.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIP } from 'node:net';
import { cleanUp, type Ending } from './cleanup.ts';

/** An alias (CNAME) of another name, which has these addresses. */
export interface DnsAlias {
  readonly alias: string;
  readonly addresses: readonly string[];
}

/** Addresses of both families; `absent` for NXDOMAIN, `failing` for SERVFAIL, `silent` for no answer at all. */
export type DnsAnswer = readonly string[] | DnsAlias | 'absent' | 'failing' | 'silent';

export interface DnsServer {
  /** `address:port`. */
  readonly address: string;
  /** The names queried, one entry for each query. */
  readonly questions: readonly string[];
  answer(name: string, answer: DnsAnswer | (() => DnsAnswer)): void;
}

const CNAME = 5;
const TYPES: Readonly<Record<number, 4 | 6>> = { 1: 4, 28: 6 };

export async function startDnsServer(context: Ending): Promise<DnsServer> {
  const answers = new Map<string, () => DnsAnswer>();
  const questions: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (message, peer) => {
    const question = questionOf(message);
    questions.push(question.name);
    const answer = answers.get(question.name)?.() ?? 'absent';
    if (answer !== 'silent') socket.send(answerTo(message, question, answer), peer.port, peer.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  cleanUp(context, async () => {
    const closed = once(socket, 'close');
    socket.close();
    await closed;
  });
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    answer: (name, answer) => answers.set(name, typeof answer === 'function' ? answer : () => answer),
  };
}

interface Question {
  readonly name: string;
  readonly type: number;
  /** The offset at which the question ends in the message. */
  readonly end: number;
}

/** Parses the question of a message (RFC 1035, section 4.1). */
function questionOf(message: Buffer): Question {
  const labels: string[] = [];
  let at = 12;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

function answerTo(message: Buffer, { type, end }: Question, answer: Exclude<DnsAnswer, 'silent'>): Buffer {
  const family = TYPES[type];
  const alias = typeof answer === 'object' && 'alias' in answer ? answer : null;
  const all = typeof answer === 'string' ? [] : 'alias' in answer ? answer.addresses : answer;
  const addresses = all.filter((address) => isIP(address) === family);
  // The record's owner: a pointer to the question's name, or the target of the alias.
  const owner = alias === null ? Buffer.from('c00c', 'hex') : encodedName(alias.alias);
  const records = addresses.map((address) =>
    record(owner, type, family === 4 ? Buffer.from(address.split('.').map(Number)) : bytesOfIpv6(address)),
  );
  if (alias !== null) records.unshift(record(Buffer.from('c00c', 'hex'), CNAME, owner));
  const head = Buffer.from(message.subarray(0, 12));
  const code = answer === 'absent' ? 3 : answer === 'failing' ? 2 : 0;
  head.writeUInt16BE(0x8180 | code, 2);
  head.writeUInt16BE(records.length, 6);
  head.writeUInt32BE(0, 8);
  return Buffer.concat([head, message.subarray(12, end), ...records]);
}

/** A resource record of class IN with a time to live of zero. */
function record(owner: Buffer, type: number, bytes: Buffer): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(1, 2);
  head.writeUInt16BE(bytes.length, 8);
  return Buffer.concat([owner, head, bytes]);
}

function encodedName(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label, 'latin1')]));
  return Buffer.concat([...labels, Buffer.of(0)]);
}

function bytesOfIpv6(address: string): Buffer {
  // The URL parser rewrites a dotted IPv4 tail in hex.
  const [before = '', after] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::');
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const [head, tail] = [groups(before), groups(after ?? '')];
  const zeros = Array<string>(8 - head.length - tail.length).fill('0');
  return Buffer.from([...head, ...zeros, ...tail].map((group) => group.padStart(4, '0')).join(''), 'hex');
}
