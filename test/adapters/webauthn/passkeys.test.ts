/** The check of passkeys, against an authenticator in software that misbehaves. */
import assert from 'node:assert/strict';
import { afterEach, describe, test, vi } from 'vitest';
import { PASSKEY_ANSWER_LENGTH_MAX } from '../../../adapters/webauthn/answer.ts';
import {
  PASSKEY_CREDENTIAL_ID_BYTES_MAX,
  PASSKEY_PUBLIC_KEY_BYTES_MAX,
} from '../../../adapters/webauthn/ceremonies.ts';
import { createWebauthnPasskeys } from '../../../adapters/webauthn/passkeys.ts';
import { RSA_MODULUS_BYTES_MIN } from '../../../adapters/webauthn/public-key.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import type { Passkey, PasskeyAnswer } from '../../../core/ports/passkeys.ts';
import { newAccount } from '../../support/events.ts';
import { selfSignedCertificate } from '../../support/self-signed-certificate.ts';
import {
  type AuthenticatorOptions,
  type Cbor,
  createSoftwareAuthenticator,
  type Misbehaviour,
} from '../../support/software-authenticator.ts';

const ORIGIN = 'https://git.example.org';
const passkeys = createWebauthnPasskeys({ webUrl: ORIGIN, name: 'Strata' });

function parsed(text: string): PasskeyAnswer {
  const answer = passkeys.parseAnswer(text);
  assert.ok(answer !== null);
  return answer;
}

async function enrolled(misbehaviour: Misbehaviour = {}, options: Partial<AuthenticatorOptions> = {}) {
  const account: AccountId = newAccount();
  const authenticator = createSoftwareAuthenticator({ origin: ORIGIN, ...options });
  const prompt = await passkeys.creationPrompt({ account, username: 'ada' }, []);
  const text = authenticator.create(prompt.options, misbehaviour);
  return {
    authenticator,
    account,
    prompt,
    text,
    created: await passkeys.verifyCreation(parsed(text), prompt.challenge),
  };
}

async function signed(misbehaviour: Misbehaviour = {}) {
  const { authenticator, account, created } = await enrolled();
  assert.ok(created !== null);
  const { passkey } = created;
  const prompt = await passkeys.signaturePrompt([passkey]);
  const answer = parsed(authenticator.get(prompt.options, misbehaviour));
  return {
    account,
    passkey,
    answer,
    prompt,
    verified: await passkeys.verifySignature(answer, prompt.challenge, passkey),
  };
}

/** What an attacker can make an honest browser or a forged one do. */
const ATTACKS: Readonly<Record<string, Misbehaviour>> = {
  'of another origin': { origin: 'https://git.example.org.evil.example' },
  'of the origin on another port': { origin: `${ORIGIN}:8443` },
  'of the origin without HTTPS': { origin: 'http://git.example.org' },
  'for another relying party': { rpId: 'evil.example' },
  'to another challenge': { challenge: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
  'without user verification': { userVerified: false },
  'without user presence': { userPresent: false, userVerified: false },
};

describe('A passkey', () => {
  afterEach(() => vi.restoreAllMocks());

  test('is created with a counter, and its signatures are verified with the next one', async () => {
    const { created, authenticator } = await enrolled();
    assert.ok(created !== null);
    assert.deepEqual([created.signCount, created.passkey.credentialId], [1, authenticator.credentialIds[0]]);
    const { verified, answer, account } = await signed();
    assert.deepEqual(verified, { signCount: 2 });
    assert.equal(answer.account, account);
  });

  test('is asked for with user verification, without an attestation, and not again where it is known', async () => {
    const account = newAccount();
    const known: Passkey = { credentialId: 'a25vd24', publicKey: '' };
    const { challenge, options } = await passkeys.creationPrompt({ account, username: 'ada' }, [known]);
    const { user, rp, authenticatorSelection, attestation, excludeCredentials } = options;
    assert.deepEqual(rp, { name: 'Strata', id: 'git.example.org' });
    assert.deepEqual(user, { id: Buffer.from(account).toString('base64url'), name: 'ada', displayName: 'ada' });
    assert.equal(attestation, 'none');
    assert.deepEqual(excludeCredentials, [{ id: 'a25vd24', type: 'public-key' }]);
    assert.equal((authenticatorSelection as { userVerification?: string }).userVerification, 'required');
    const again = await passkeys.signaturePrompt([known]);
    assert.equal(again.options['userVerification'], 'required');
    assert.deepEqual(again.options['allowCredentials'], [{ id: 'a25vd24', type: 'public-key' }]);
    assert.ok(Buffer.from(challenge, 'base64url').length >= 16 && challenge !== again.challenge);
  });

  for (const [name, misbehaviour] of Object.entries(ATTACKS)) {
    test(`is not created from an answer ${name}`, async () => {
      assert.equal((await enrolled(misbehaviour)).created, null);
    });

    test(`does not sign in with an answer ${name}`, async () => {
      assert.equal((await signed(misbehaviour)).verified, null);
    });
  }

  // The attack: an answer to one form is sent to the other.
  test('is not created from a signature, nor does its creation sign in', async () => {
    assert.equal((await enrolled({ type: 'webauthn.get' })).created, null);
    assert.equal((await signed({ type: 'webauthn.create' })).verified, null);
    const { text, prompt, created } = await enrolled();
    assert.ok(created !== null);
    assert.equal(await passkeys.verifySignature(parsed(text), prompt.challenge, created.passkey), null);
    const { answer, prompt: signing } = await signed();
    assert.equal(await passkeys.verifyCreation(answer, signing.challenge), null);
  });

  // The attack: the website in a frame of another site.
  test('is not read from an answer that was made in a frame of another origin', async () => {
    const { authenticator, prompt, created } = await enrolled();
    assert.ok(created !== null);
    const options = (await passkeys.signaturePrompt([created.passkey])).options;
    assert.equal(passkeys.parseAnswer(authenticator.get(options, { crossOrigin: true })), null);
    assert.equal(passkeys.parseAnswer(authenticator.create(prompt.options, { crossOrigin: true })), null);
  });

  // The attack: a signature of another key under this passkey's id, or of this key under another id.
  test('is bound to its key', async () => {
    const { passkey, answer, prompt } = await signed();
    const { created: other } = await enrolled();
    assert.ok(other !== null);
    const forged = { ...passkey, publicKey: other.passkey.publicKey };
    assert.equal(await passkeys.verifySignature(answer, prompt.challenge, forged), null);
    assert.equal(await passkeys.verifySignature(answer, prompt.challenge, other.passkey), null);
  });

  /**
   * Firefox and some password managers send one unasked, as do keys of FIDO U2F (Web Authentication, section 8). The
   * attack: certificates whose revocation lists lie on hosts of the attacker's choice.
   */
  test('is created without the attestation that its answer brings unasked, and without any request', async () => {
    const fetched = vi.spyOn(globalThis, 'fetch');
    const certified = new Map<string, Cbor>([
      ['alg', -7],
      ['sig', Buffer.alloc(70)],
      ['x5c', [Buffer.alloc(200)]],
    ]);
    const selfSigned = new Map([...certified].filter(([name]) => name !== 'x5c'));
    for (const format of ['packed', 'fido-u2f', 'tpm', 'apple', 'android-key', 'android-safetynet', 'other']) {
      for (const statement of [certified, selfSigned]) {
        const { created, authenticator } = await enrolled({ attestation: [format, statement] });
        assert.ok(created !== null, format);
        const { challenge, options } = await passkeys.signaturePrompt([created.passkey]);
        const answer = parsed(authenticator.get(options));
        assert.deepEqual(await passkeys.verifySignature(answer, challenge, created.passkey), { signCount: 2 });
      }
    }
    assert.ok((await enrolled({ certified: selfSignedCertificate() })).created !== null);
    const stranger = await enrolled({ attestation: ['packed', certified], origin: 'https://evil.example' });
    assert.equal(stranger.created, null);
    assert.equal(fetched.mock.calls.length, 0);
  });

  test('is made by any of the algorithms that it is asked for', async () => {
    for (const algorithm of ['ES256', 'EdDSA', 'RS256'] as const) {
      const { created, authenticator } = await enrolled({}, { algorithm });
      assert.ok(created !== null, algorithm);
      const { challenge, options } = await passkeys.signaturePrompt([created.passkey]);
      const answer = parsed(authenticator.get(options));
      assert.deepEqual(await passkeys.verifySignature(answer, challenge, created.passkey), { signCount: 2 }, algorithm);
    }
  });

  // The attack: a key that can be broken, or one that takes long to use.
  test('has an RSA key of at least 2,048 bits, and a key of at most the limit', async () => {
    assert.equal((await enrolled({}, { algorithm: 'RS256', rsaBits: 8 * (RSA_MODULUS_BYTES_MIN - 1) })).created, null);
    assert.ok((await enrolled({}, { algorithm: 'RS256', rsaBits: 8 * RSA_MODULUS_BYTES_MIN })).created !== null);
    for (const [publicKeyBytes, isTaken] of [
      [PASSKEY_PUBLIC_KEY_BYTES_MAX, true],
      [PASSKEY_PUBLIC_KEY_BYTES_MAX + 1, false],
    ] as const) {
      assert.equal((await enrolled({ publicKeyBytes })).created !== null, isTaken, String(publicKeyBytes));
    }
  });

  test('has an id of at most the limit', async () => {
    const longest = await enrolled({ credentialIdBytes: PASSKEY_CREDENTIAL_ID_BYTES_MAX });
    assert.ok(longest.created !== null);
    assert.equal((await enrolled({ credentialIdBytes: PASSKEY_CREDENTIAL_ID_BYTES_MAX + 1 })).created, null);
  });

  // The attack: bytes that break a parser.
  test('is refused from every answer that is cut or changed in one place', async () => {
    const { text, prompt } = await enrolled();
    const bytes = JSON.parse(text) as { response: { attestationObject: string } };
    const object = Buffer.from(bytes.response.attestationObject, 'base64url');
    for (let length = 0; length < object.length; length += 7) {
      const response = { ...bytes.response, attestationObject: object.subarray(0, length).toString('base64url') };
      const answer = passkeys.parseAnswer(JSON.stringify({ ...bytes, response }));
      if (answer !== null) assert.equal(await passkeys.verifyCreation(answer, prompt.challenge), null, String(length));
    }
    for (const junk of ['', 'null', '[]', '{}', '{"id":1}', '{"id":"a"', JSON.stringify({ ...bytes, response: null })])
      assert.equal(passkeys.parseAnswer(junk), null, junk);
  });

  test('is read from an answer of at most the limit', async () => {
    const { text } = await enrolled();
    assert.notEqual(passkeys.parseAnswer(text.padEnd(PASSKEY_ANSWER_LENGTH_MAX)), null);
    assert.equal(passkeys.parseAnswer(text.padEnd(PASSKEY_ANSWER_LENGTH_MAX + 1)), null);
  });

  test('can be used on localhost and on HTTPS with a name, which is where browsers offer it', () => {
    const available = (webUrl: string) => createWebauthnPasskeys({ webUrl, name: 'Strata' }).available;
    for (const url of ['http://localhost:8080', 'http://strata.localhost', 'https://git.example.org'])
      assert.equal(available(url), true, url);
    for (const url of ['http://git.example.org', 'http://127.0.0.1:8080', 'https://192.0.2.1', 'https://[::1]:8443'])
      assert.equal(available(url), false, url);
  });
});
