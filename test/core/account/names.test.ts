/** The rules for the names of accounts and repositories, and for email addresses. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { spellDomain } from '../../../adapters/node/spell-domain.ts';
import {
  emailKeys,
  emailRefusal,
  isUsernameForm,
  repositoryNameKey,
  repositoryNameRefusal,
  usernameRefusal,
} from '../../../core/account/names.ts';
import { EMAIL_LENGTH_MAX } from '../../../core/kernel/limits.ts';

const code = (refusal: { readonly code: string } | null) => refusal?.code ?? 'taken';

describe('A username', () => {
  test('has 2 to 39 characters of a-z, 0-9 and single inner hyphens', () => {
    for (const name of ['ab', 'a1', '42', 'a-b-c', 'a'.repeat(39)])
      assert.equal(code(usernameRefusal(name)), 'taken', name);
    for (const name of [
      '',
      'a',
      'a'.repeat(40),
      '-ab',
      'ab-',
      'a--b',
      'Ab',
      'a_b',
      'a.b',
      'a b',
      'a%2Fb',
      'a/b',
      'ab\n',
      'é'.repeat(3),
      'e\u0301e',
      '\u212aa',
      'a\0b',
    ]) {
      assert.equal(code(usernameRefusal(name)), 'username-invalid', JSON.stringify(name));
    }
  });

  test('is refused if it is a path of the website or the API, seems official, or is a device of Windows', () => {
    const paths =
      'sign-up sign-in sign-out settings access-tokens mfa-tokens webhooks storage-buckets oidc-trust usage';
    const more = 'history docs v1 metrics healthz readyz';
    const ours = 'admin api assets login logout root security static support system';
    const devices = 'con nul aux prn com1 lpt9';
    for (const name of `${paths} ${more} ${ours} ${devices}`.split(' ')) {
      assert.equal(code(usernameRefusal(name)), 'username-reserved', name);
    }
    for (const name of ['console', 'com', 'com10', 'admins', 'v2'])
      assert.equal(code(usernameRefusal(name)), 'taken', name);
  });

  test('can still be looked up after it became reserved', () => {
    assert.equal(isUsernameForm('admin'), true);
    for (const name of ['', 'Admin', 'a'.repeat(40), '../x']) assert.equal(isUsernameForm(name), false, name);
  });
});

describe('The name of a repository', () => {
  test('has 1 to 100 letters, digits, dots, hyphens and underscores', () => {
    for (const name of ['a', 'A.b-c_d', '_', '1', 'x'.repeat(100), 'git', 'a.git.b', 'lock', 'a.locked']) {
      assert.equal(repositoryNameRefusal(name), null, name);
    }
    for (const name of [
      '',
      'x'.repeat(101),
      'a b',
      'a/b',
      'a%2Fb',
      'é',
      'e\u0301',
      '\u212a',
      'a\0',
      'a\n',
      'a@b',
      'a\\b',
    ]) {
      assert.equal(code(repositoryNameRefusal(name)), 'repository-name-invalid', JSON.stringify(name));
    }
  });

  test('is refused if it looks like an option, a hidden file, a parent folder or a suffix that git uses', () => {
    for (const name of ['-a', '.a', '.', '..', 'a..b', 'a.', 'a.git', 'a.GIT', '.git', 'a.lock', 'a.Lock']) {
      assert.equal(code(repositoryNameRefusal(name)), 'repository-name-invalid', name);
    }
  });

  test('is refused if it is a device of Windows, with or without a suffix', () => {
    for (const name of ['con', 'NUL', 'aux.js', 'Com1', 'lpt9.tar.gz']) {
      assert.equal(code(repositoryNameRefusal(name)), 'repository-name-invalid', name);
    }
    for (const name of ['console', 'com', 'nul-', 'x.con']) assert.equal(repositoryNameRefusal(name), null, name);
  });

  test('is compared without regard to the case of A to Z, but not of other letters', () => {
    assert.equal(repositoryNameKey('My.Repo'), repositoryNameKey('mY.rEPO'));
    // Unicode folds the Kelvin sign to k. A path that holds it must find nothing.
    assert.notEqual(repositoryNameKey('\u212a'), repositoryNameKey('k'));
  });
});

describe('An email address', () => {
  test('has text on both sides of one @, no blanks, and at most 254 characters', () => {
    for (const email of ['a@b', 'ada@example.org', 'ü@müller.example', `${'a'.repeat(252)}@b`]) {
      assert.equal(emailRefusal(email, spellDomain), null, email);
    }
    for (const email of [
      '',
      '@',
      'a@',
      '@b',
      'ab',
      'a@b@c',
      'a @b',
      'a@b\n',
      'a@\0',
      '\ud800@b',
      `${'a'.repeat(253)}@b`,
    ]) {
      assert.equal(code(emailRefusal(email, spellDomain)), 'email-invalid', JSON.stringify(email));
    }
  });

  test('is compared without regard to case', () => {
    assert.deepEqual(emailKeys('Ada@Example.ORG', spellDomain), ['ada@example.org']);
  });

  test('with an international domain has a first form that both spellings share, and the forms of before', () => {
    const ascii = 'ädä@xn--mnchen-3ya.example';
    const unicode = 'ädä@münchen.example';
    assert.deepEqual(emailKeys('Ädä@MÜNCHEN.example', spellDomain), [ascii, unicode]);
    assert.deepEqual(emailKeys('ädä@XN--mnchen-3ya.example', spellDomain), [ascii, unicode]);
    const wide = 'ädä@ｍünchen.example';
    assert.deepEqual(emailKeys(wide, spellDomain), [ascii, wide, unicode]);
    assert.deepEqual(emailKeys('ada@ｅxample.org', spellDomain), ['ada@example.org', 'ada@ｅxample.org']);
  });

  test('is not mapped before the @, nor where its domain has one spelling', () => {
    for (const email of [
      'ａｄａ@example.org',
      'xn--mnchen-3ya@example.org',
      'ada@[::1]',
      'ada@a_b',
      'ada@127.1',
      'ada@ü..',
    ]) {
      assert.deepEqual(emailKeys(email, spellDomain), [email]);
    }
    const long = `ada@${'ü'.repeat(EMAIL_LENGTH_MAX)}`;
    assert.deepEqual(emailKeys(long, spellDomain), [long]);
  });

  test('is refused with the reason if no domain can have its name, or if that is too long in ASCII', () => {
    const none = { code: 'email-invalid', reason: 'No domain can have the name behind the "@"' };
    for (const domain of ['\u00ad', 'xn--a', 'xn--a.example', 'ü/b', 'ü..example', `${'ü'.repeat(70)}.example`]) {
      assert.deepEqual(emailRefusal(`ada@${domain}`, spellDomain), none, domain);
    }
    const ascii = 'xn--mnchen-3ya.example';
    const longest = 'a'.repeat(EMAIL_LENGTH_MAX - 1 - ascii.length);
    assert.equal(emailRefusal(`${longest}@münchen.example`, spellDomain), null);
    const refused = emailRefusal(`${longest}a@münchen.example`, spellDomain);
    const reason = 'With its domain in ASCII, this is longer than 254 characters';
    assert.deepEqual(refused, { code: 'email-invalid', reason });
  });
});
