/** The server's settings: the accepted values, and those that stop the start. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import path from 'node:path';
import { describe, test } from 'vitest';
import { PUSH_MEMORY_BYTES_MIN, RETENTION_MS_MIN, readSettings } from '../../../apps/server/settings.ts';
import { SettingsError } from '../../../apps/server/settings-reader.ts';
import { PUSH_MEMORY_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { ROOT } from '../../architecture/source-tree.ts';
import { faultsIn } from '../../support/settings-faults.ts';

describe('STRATA_ALLOW_PRIVATE_TARGETS', () => {
  const read = (value?: string) =>
    readSettings(value === undefined ? {} : { STRATA_ALLOW_PRIVATE_TARGETS: value }, '/').allowPrivateTargets;

  test('is false until it is set to true', () => {
    assert.equal(read(), false);
    assert.equal(read(''), false);
    assert.equal(read('false'), false);
    assert.equal(read('true'), true);
  });

  test('stops the start with any other value, and prints the expected one', () => {
    for (const value of ['1', 'TRUE', 'yes', ' true']) {
      assert.throws(() => read(value), {
        name: 'SettingsError',
        message: /STRATA_ALLOW_PRIVATE_TARGETS is .*: expected one of true, false/,
      });
    }
  });
});

describe('STRATA_DATABASE_OWNER_URL', () => {
  const DATABASE = 'postgresql://server:secret@host/strata';

  test('goes with the address of the role that serves', () => {
    const owner = 'postgresql://owner:secret@host/strata';
    const both = readSettings({ STRATA_DATABASE_URL: DATABASE, STRATA_DATABASE_OWNER_URL: owner }, '/');
    assert.deepEqual([both.databaseUrl, both.databaseOwnerUrl], [DATABASE, owner]);
    assert.equal(readSettings({ STRATA_DATABASE_URL: DATABASE }, '/').databaseOwnerUrl, null);
    assert.throws(() => readSettings({ STRATA_DATABASE_OWNER_URL: owner }, '/'), /goes with STRATA_DATABASE_URL/);
  });

  test('stops the start if it is no address, without a word of its content', () => {
    assert.throws(
      () => readSettings({ STRATA_DATABASE_URL: DATABASE, STRATA_DATABASE_OWNER_URL: 'mysql://a:secret@b' }, '/'),
      (error) =>
        error instanceof SettingsError &&
        error.message.includes('STRATA_DATABASE_OWNER_URL is set, but no such address') &&
        !error.message.includes('secret'),
    );
  });
});

describe('STRATA_ROLES', () => {
  test('is every role by default', () => {
    assert.deepEqual(readSettings({}, '/').roles, ['api', 'git', 'website', 'worker']);
  });

  test('takes one role or several, with spaces around them', () => {
    assert.deepEqual(readSettings({ STRATA_ROLES: 'worker' }, '/').roles, ['worker']);
    assert.deepEqual(readSettings({ STRATA_ROLES: 'git, api' }, '/').roles, ['api', 'git']);
  });

  test('refuses an unknown role or an empty list by the name of the setting', () => {
    for (const value of ['api,wroker', 'all', 'api,', ',', 'API']) {
      assert.throws(
        () => readSettings({ STRATA_ROLES: value }, '/'),
        (error) =>
          error instanceof SettingsError &&
          error.message.includes(`STRATA_ROLES is ${JSON.stringify(value)}: expected one or more of api, git,`),
        value,
      );
    }
  });
});

describe('STRATA_BASE_URL and STRATA_WEB_URL', () => {
  const read = (value: string) => readSettings({ STRATA_BASE_URL: value, STRATA_WEB_URL: value }, '/');

  test('are the roots of hosts', () => {
    for (const [value, taken] of [
      ['https://git.example.org', 'https://git.example.org'],
      ['https://git.example.org/', 'https://git.example.org'],
      ['http://[::1]:8080', 'http://[::1]:8080'],
    ] as const) {
      const { baseUrl, webUrl } = read(value);
      assert.deepEqual([baseUrl, webUrl], [taken, taken]);
    }
  });

  test('stop the start, each by its name, with a path, of which only half of the addresses would know', () => {
    for (const value of [
      'https://example.org/git',
      'https://example.org/git/',
      'https://example.org//git',
      'https://example.org/%20',
      'https://example.org\\git',
      'https://example.org?x',
      'https://example.org/#git',
      'https://somebody@example.org',
      'https://:password@example.org',
      'https://example.org:port',
      'git.example.org',
    ]) {
      const faults = faultsIn(() => read(value));
      for (const name of ['STRATA_BASE_URL', 'STRATA_WEB_URL']) {
        assert.ok(faults.includes(`${name} is ${JSON.stringify(value)}: expected an http or https URL`), faults);
      }
    }
  });
});

describe('A variable that is spelt almost like a setting', () => {
  const misspelt = (name: string) => readSettings({ [name]: 'x' }, '/').misspelt;

  test('is found with the nearest name, whichever setting was meant', () => {
    const names = readFileSync(path.join(ROOT, 'test/golden/names/settings.txt'), 'utf8').matchAll(
      /^variable (STRATA_\w+)$/gm,
    );
    const settings = [...names].map(([, name = '']) => name).filter((name) => name !== 'STRATA_FAILPOINT');
    assert.ok(settings.length > 40);
    for (const nearest of settings) assert.deepEqual(misspelt(`${nearest}X`), [{ name: `${nearest}X`, nearest }]);
    for (const [name, nearest] of [
      ['STRATA_TRUSTED_PROXY', 'STRATA_TRUSTED_PROXIES'],
      ['STRATA_BASEURL', 'STRATA_BASE_URL'],
      ['STRATA_PROT', 'STRATA_PORT'],
      ['STRATA_DATABSAE_URL', 'STRATA_DATABASE_URL'],
    ] as const) {
      assert.deepEqual(misspelt(name), [{ name, nearest }]);
    }
  });

  test('is not one of another program, nor a setting itself', () => {
    const others = ['STRATA_SERVICE_HOST', 'STRATA_PORT_8080_TCP', 'STRATA_TEST_GIT', 'STRATA_URL', 'STRATA_'];
    for (const name of [...others, 'BASE_URL', 'STRATAPORT']) assert.deepEqual(misspelt(name), [], name);
    assert.deepEqual(readSettings({ STRATA_SIGN_UP: 'closed', STRATA_FAILPOINT: '' }, '/').misspelt, []);
  });
});

test('STRATA_FORWARDED_HEADER names the one header that counts, and stops the start with any other', () => {
  const read = (value: string) => readSettings({ STRATA_FORWARDED_HEADER: value }, '/').forwardedHeader;
  assert.deepEqual([readSettings({}, '/').forwardedHeader, read('')], ['x-forwarded-for', 'x-forwarded-for']);
  assert.equal(read('forwarded'), 'forwarded');
  for (const value of ['Forwarded', 'x-real-ip', 'x-forwarded-for,forwarded']) {
    assert.throws(() => read(value), /STRATA_FORWARDED_HEADER is .*: expected one of x-forwarded-for, forwarded/);
  }
});

describe('STRATA_BYO_REQUIRES_PLAN', () => {
  test('gives every plan storage of its own when it is false, and stops the start with any other value', () => {
    const plans = (environment: Record<string, string>) =>
      Object.values(readSettings(environment, '/').plans).map(({ byo_storage }) => byo_storage);
    assert.deepEqual(plans({}), [false, true, true]);
    assert.deepEqual(plans({ STRATA_BYO_REQUIRES_PLAN: 'true' }), [false, true, true]);
    assert.deepEqual(plans({ STRATA_BYO_REQUIRES_PLAN: 'false' }), [true, true, true]);
    assert.throws(() => plans({ STRATA_BYO_REQUIRES_PLAN: 'no' }), /STRATA_BYO_REQUIRES_PLAN is .*true, false/);
  });
});

describe('deliveries_per_hour of STRATA_PLANS', () => {
  const plansOf = (FREE: object) => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'strata-plans-')), 'plans.json');
    const quotas = { repos: 1, storage_bytes: null, transfer_bytes: null, ingress_bytes: null, byo_storage: false };
    writeFileSync(file, JSON.stringify({ FREE: { ...quotas, ...FREE } }));
    return Object.values(readSettings({ STRATA_PLANS: file }, '/').plans).map((plan) => plan.deliveries_per_hour);
  };

  test('is that of the shipped plan where a file leaves it out, and at least 1, or null', () => {
    assert.deepEqual(plansOf({}), [5_000, 50_000, 50_000]);
    assert.deepEqual(plansOf({ deliveries_per_hour: 1 }), [1, 50_000, 50_000]);
    assert.deepEqual(plansOf({ deliveries_per_hour: null }), [null, 50_000, 50_000]);
    for (const wrong of [0, -1, 1.5, '5']) {
      assert.throws(() => plansOf({ deliveries_per_hour: wrong }), /STRATA_PLANS is .*FREE.deliveries_per_hour/);
    }
  });
});

describe('changes_per_month of STRATA_PLANS', () => {
  const plansOf = (plans: object) => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'strata-plans-')), 'plans.json');
    writeFileSync(file, JSON.stringify(plans));
    return Object.values(readSettings({ STRATA_PLANS: file }, '/').plans).map((plan) => plan.changes_per_month);
  };
  const quotas = { repos: 1, storage_bytes: null, transfer_bytes: null, ingress_bytes: null, byo_storage: false };

  test('is 200,000 of FREE as it is shipped, and null where a plan of a file leaves it out', () => {
    const shipped = Object.values(readSettings({}, '/').plans).map((plan) => plan.changes_per_month);
    assert.deepEqual(shipped, [200_000, null, null]);
    assert.deepEqual(plansOf({ FREE: quotas, PRO: quotas }), [null, null, null]);
    assert.deepEqual(plansOf({ PRO: { ...quotas, changes_per_month: 7 } }), [200_000, 7, null]);
    for (const right of [0, 1, null]) {
      assert.deepEqual(plansOf({ FREE: { ...quotas, changes_per_month: right } }), [right, null, null]);
    }
    for (const wrong of [-1, 1.5, '5']) {
      const plans = { FREE: { ...quotas, changes_per_month: wrong } };
      assert.throws(() => plansOf(plans), /STRATA_PLANS is .*FREE.changes_per_month/);
    }
  });
});

test('STRATA_RATE_FACTOR is 1 until it is set, and a whole number', () => {
  assert.equal(readSettings({}, '/').rateFactor, 1);
  assert.equal(readSettings({ STRATA_RATE_FACTOR: '1000' }, '/').rateFactor, 1_000);
  for (const value of ['0', '-1', '1.5', 'none', '1000001']) {
    assert.throws(() => readSettings({ STRATA_RATE_FACTOR: value }, '/'), /STRATA_RATE_FACTOR is/);
  }
});

describe('STRATA_SIGN_UP', () => {
  test('is open until it is set to closed, and stops the start with any other value', () => {
    assert.equal(readSettings({}, '/').signUpOpen, true);
    assert.equal(readSettings({ STRATA_SIGN_UP: 'open' }, '/').signUpOpen, true);
    assert.equal(readSettings({ STRATA_SIGN_UP: 'closed' }, '/').signUpOpen, false);
    assert.throws(() => readSettings({ STRATA_SIGN_UP: 'no' }, '/'), {
      name: 'SettingsError',
      message: /STRATA_SIGN_UP is .*: expected one of open, closed/,
    });
  });
});

describe('STRATA_STS_ENDPOINT', () => {
  test("is Amazon's token service until an address is set", () => {
    assert.equal(readSettings({}, '/').stsEndpoint, null);
    const STRATA_STS_ENDPOINT = 'https://sts.example.org/';
    assert.equal(readSettings({ STRATA_STS_ENDPOINT }, '/').stsEndpoint, 'https://sts.example.org');
    for (const value of ['sts.example.org', 'ftp://sts.example.org', 'https://key:secret@sts.example.org']) {
      assert.throws(
        () => readSettings({ STRATA_STS_ENDPOINT: value }, '/'),
        /STRATA_STS_ENDPOINT is .*: expected an http/,
      );
    }
  });
});

describe('STRATA_OPERATOR_CONTACT', () => {
  test('is one line of at most 200 characters', () => {
    assert.equal(readSettings({}, '/').operatorContact, null);
    for (const contact of ['help@example.org', 'Ö'.repeat(200)]) {
      assert.equal(readSettings({ STRATA_OPERATOR_CONTACT: contact }, '/').operatorContact, contact);
    }
    for (const contact of ['x'.repeat(201), 'two\nlines', 'a\0b']) {
      assert.throws(
        () => readSettings({ STRATA_OPERATOR_CONTACT: contact }, '/'),
        /STRATA_OPERATOR_CONTACT is .*one line/,
      );
    }
  });
});

test('STRATA_SECURITY_CONTACT is a URI, which an email address becomes', () => {
  const read = (value: string) => readSettings({ STRATA_SECURITY_CONTACT: value }, '/').securityContact;
  assert.equal(read(''), null);
  assert.equal(read('security@example.org'), 'mailto:security@example.org');
  for (const uri of ['https://example.org/report', 'mailto:security@example.org', 'tel:+1-201-555-0123']) {
    assert.equal(read(uri), uri);
  }
  for (const value of ['http://example.org/', 'somebody', 'https://a\nExpires: x', 'https://a b', 'javascript:x']) {
    assert.throws(() => read(value), /STRATA_SECURITY_CONTACT is .*: expected an email address, or an https/);
  }
});

describe('STRATA_RETENTION_DAYS', () => {
  const DAY_MS = 24 * 60 * 60_000;
  const read = (days?: string) =>
    readSettings(days === undefined ? {} : { STRATA_RETENTION_DAYS: days }, '/').retentionMs;

  test('is 30 days until it is set', () => {
    assert.deepEqual([read(), read('1'), read('3650')], [30 * DAY_MS, DAY_MS, 3_650 * DAY_MS]);
  });

  test('may be 0, which is the hour that requests and deliveries under way need', () => {
    assert.equal(read('0'), RETENTION_MS_MIN);
  });

  test('stops the start with anything else', () => {
    for (const value of ['-1', '3651', '0.5', 'none']) assert.throws(() => read(value), /STRATA_RETENTION_DAYS is/);
  });
});

describe('STRATA_PUSH_MEMORY_BYTES_MAX', () => {
  const read = (bytes?: number) =>
    readSettings(bytes === undefined ? {} : { STRATA_PUSH_MEMORY_BYTES_MAX: String(bytes) }, '/').pushMemoryBytesMax;

  test('is at most a quarter of the memory by default, and never less than a push needs', () => {
    const bytes = read();
    assert.ok(bytes >= PUSH_MEMORY_BYTES_MIN && bytes <= PUSH_MEMORY_BYTES_MAX, `${bytes}`);
    assert.ok(bytes === PUSH_MEMORY_BYTES_MIN || bytes <= totalmem() / 4);
  });

  test('may be any more than the least, and a byte less stops the start', () => {
    assert.equal(read(PUSH_MEMORY_BYTES_MIN), PUSH_MEMORY_BYTES_MIN);
    assert.equal(read(2 ** 40), 2 ** 40);
    assert.throws(() => read(PUSH_MEMORY_BYTES_MIN - 1), /STRATA_PUSH_MEMORY_BYTES_MAX is/);
  });
});
