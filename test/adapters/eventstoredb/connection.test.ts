/** Addresses of EventStoreDB: every part of one is honoured or refused. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'vitest';
import { parseEventStoreDbAddress } from '../../../adapters/eventstoredb/connection.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { openServer, openStore } from '../../support/eventstoredb/open-log.ts';
import { selfSignedCertificate } from '../../support/self-signed-certificate.ts';
import { tempDir } from '../../support/temp-dir.ts';

const parse = (address: string) => parseEventStoreDbAddress(address, '/nowhere');

describe('an address of EventStoreDB', () => {
  test('is parsed into its hosts, ports, credentials and options', () => {
    assert.deepEqual(parse('esdb://127.0.0.1:2113?tls=false'), {
      hosts: [{ address: '127.0.0.1', port: 2113 }],
      discover: false,
      tls: null,
      credentials: null,
      tuning: {},
    });
    const cluster = parse(
      'esdb://ad%40a:p%3Aw%25@one,two:21130,[::1]:3?keep-alive-interval=20000&nodePreference=leader',
    );
    assert.deepEqual(cluster.hosts, [
      { address: 'one', port: 2113 },
      { address: 'two', port: 21_130 },
      { address: '[::1]', port: 3 },
    ]);
    assert.deepEqual(cluster.credentials, { username: 'ad@a', password: 'p:w%' });
    assert.deepEqual([cluster.tls, cluster.tuning], [{}, { keepAliveInterval: 20_000 }]);
    assert.equal(parse('esdb+discover://cluster.example.org').discover, true);
  });

  const refused: readonly (readonly [string, RegExp])[] = [
    // The client would send no credentials, without a warning.
    ['esdb://ada:secret@host?tls=false', /with tls=false the client sends no credentials/],
    ['esdb://ada:secret@host?TLS=false', /with tls=false the client sends no credentials/],
    // The client would take the password up to the second colon only.
    ['esdb://ada:sec:ret@host', /percent-encoded/],
    ['esdb://ada@host', /user:password/],
    ['esdb://ada:%zz@host', /percent-encoded/],
    // The client would ignore the option.
    ['esdb://host?tlsVerifyCert=false', /tlsVerifyCert=false is ignored by the client/],
    ['esdb://host?tls_verify_cert=false', /is ignored by the client/],
    ['esdb://host?tlsCAFile=missing.pem', /tlsCAFile names no readable file/],
    ['esdb://host?tls=maybe', /tls is true or false/],
    // The client would warn on standard output and ignore the option.
    ['esdb://host?tlsCaFiel=x', /there is no option "tlsCaFiel"/],
    ['esdb://host?tls=true&TLS=false', /given twice/],
    ['esdb://host?throwOnAppendFailure=false', /throwOnAppendFailure is not taken/],
    ['esdb://host?defaultDeadline=5', /defaultDeadline is not taken/],
    ['esdb://host?nodePreference=follower', /nodePreference must be leader/],
    ['esdb://host?keepAliveInterval=5', /keepAliveInterval is a whole number from 10000/],
    ['esdb+discover://one,two', /takes one host/],
    ['esdb://', /does not read/],
    ['esdb://host:99999', /no host and port/],
    ['http://host', /does not read/],
    // The address is malformed, and the message must not repeat what may be the password.
    ['esdb://ada:secret?x@host', /no host and port/],
    ['esdb://ada:12?secret@host', /percent-encode/],
  ];
  for (const [address, reason] of refused) {
    test(`is refused when it reads ${address}`, () => {
      assert.throws(
        () => parse(address),
        (error) => {
          assert.ok(error instanceof Error);
          assert.match(error.message, reason);
          assert.doesNotMatch(error.message, /secret|sec:ret/);
          return true;
        },
      );
    });
  }

  test('is refused when it names files that would have no use', async (context) => {
    const folder = await tempDir(context);
    await writeFile(path.join(folder, 'ca.pem'), 'x');
    const address = 'esdb://host?tls=false&tlsCAFile=ca.pem';
    assert.throws(() => parseEventStoreDbAddress(address, folder), /leaves no use for files/);
    assert.throws(() => parseEventStoreDbAddress('esdb://host?userKeyFile=ca.pem', folder), /go together/);
  });
});

/** gRPC's status code (statuscodes). */
const PERMISSION_DENIED = 7;

describe('a connection to EventStoreDB by TLS', () => {
  const credentials = { username: 'ada', password: 'a:b@c' };

  test('trusts the authority that tlsCAFile names, and sends the credentials', async (context) => {
    const tls = selfSignedCertificate();
    const server = await openServer(context, { tls, credentials });
    const folder = await tempDir(context);
    await writeFile(path.join(folder, 'ca.pem'), tls.cert);
    const host = `127.0.0.1:${server.port}`;
    const { store } = openStore(context, `esdb://ada:a%3Ab%40c@${host}?tlsCAFile=ca.pem`, { folder });
    const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    assert.equal(result.outcome, 'appended');
    await store.close();
    const { store: wrong } = openStore(context, `esdb://ada:wrong@${host}?tlsCAFile=ca.pem`, { folder });
    const password = {
      code: 'log-unavailable',
      message: /^EventStoreDB refuses the user or the password of STRATA_EV/,
    };
    await assert.rejects(wrong.head(), password);
    await wrong.close();
    const { store: nobody } = openStore(context, `esdb://${host}?tlsCAFile=ca.pem`, { folder });
    await assert.rejects(nobody.head(), password);
    await nobody.close();
    server.faults.read = () => {
      throw Object.assign(new Error('No right'), { code: PERMISSION_DENIED });
    };
    const { store: without } = openStore(context, `esdb://ada:a%3Ab%40c@${host}?tlsCAFile=ca.pem`, { folder });
    const right = { code: 'log-unavailable', message: /^EventStoreDB denies the user .* the right to read \$all/ };
    await assert.rejects(without.head(), right);
  });

  test("fails when no trusted authority signed the server's certificate", async (context) => {
    const server = await openServer(context, { tls: selfSignedCertificate() });
    const { store } = openStore(context, server.url, { readRetrySpanMs: 300 });
    await assert.rejects(store.head(), { code: 'log-unavailable' });
    assert.equal(server.counts.allReads, 0);
  });
});
