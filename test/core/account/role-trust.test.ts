/** What a user's cloud must trust before this service may use a role there. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { identitySubject, isRoleArn, issuerFault, roleSetup } from '../../../core/account/role-trust.ts';
import { type AccountId, uuid } from '../../../core/kernel/ids.ts';

const ACCOUNT: AccountId = uuid('0192f0c1-2d3e-7a4b-8c5d-6e7f8a9b0c1d');
const ISSUER = 'https://git.example.org';

describe('The trust policy of a role', () => {
  // The attack: another user of this service names the role in a bucket of their own. Their tokens have another
  // subject.
  test('names issuer, audience and the subject of one account, each exactly', () => {
    assert.deepEqual(roleSetup(ISSUER, ACCOUNT), {
      issuer: ISSUER,
      audience: 'sts.amazonaws.com',
      subject: `account:${ACCOUNT}`,
      trustPolicy: {
        Version: '2012-10-17',
        Statement: [
          {
            Effect: 'Allow',
            Principal: { Federated: 'arn:aws:iam::AWS_ACCOUNT_ID:oidc-provider/git.example.org' },
            Action: 'sts:AssumeRoleWithWebIdentity',
            Condition: {
              StringEquals: {
                'git.example.org:aud': 'sts.amazonaws.com',
                'git.example.org:sub': `account:${ACCOUNT}`,
              },
            },
          },
        ],
      },
    });
    assert.equal(identitySubject(ACCOUNT), `account:${ACCOUNT}`);
  });

  test('names the cloud account and partition of a role that is known', () => {
    const federated = (roleArn: string) =>
      roleSetup(`${ISSUER}/git`, ACCOUNT, roleArn).trustPolicy.Statement[0].Principal.Federated;
    const provider = 'oidc-provider/git.example.org/git';
    assert.equal(federated('arn:aws:iam::123456789012:role/strata'), `arn:aws:iam::123456789012:${provider}`);
    assert.equal(
      federated('arn:aws-us-gov:iam::123456789012:role/a/b'),
      `arn:aws-us-gov:iam::123456789012:${provider}`,
    );
    // The attack: a name that would close the quotes of the policy.
    assert.equal(federated('arn:aws:iam::123456789012:role/x"},{"'), `arn:aws:iam::AWS_ACCOUNT_ID:${provider}`);
  });
});

test('The name of a role has the form of IAM', () => {
  for (const name of ['arn:aws:iam::123456789012:role/a', `arn:aws-cn:iam::123456789012:role/${'a'.repeat(575)}`]) {
    assert.ok(isRoleArn(name), name);
  }
  for (const name of [
    ...['', 'role/a', 'arn:aws:iam::123456789012:user/a', 'arn:aws:iam::12345678901:role/a'],
    ...['arn:aws:iam::123456789012:role/', 'arn:aws:iam::123456789012:role/a b', 'arn:aws:iam::123456789012:role/a\n'],
    ...['arn:evil:iam::123456789012:role/a', `arn:aws:iam::123456789012:role/${'a'.repeat(576)}`],
  ]) {
    assert.ok(!isRoleArn(name), name);
  }
});

test('An issuer that Amazon cannot reach is told by its fault', () => {
  for (const issuer of [ISSUER, `${ISSUER}/git`, 'HTTPS://GIT.EXAMPLE.ORG', 'https://xn--bcher-kva.example.org']) {
    assert.equal(issuerFault(issuer), null, issuer);
  }
  assert.equal(issuerFault('http://git.example.org'), 'not-https');
  assert.equal(issuerFault('https://git.example.org:8443/a'), 'has-port');
  for (const host of [
    'localhost',
    '127.0.0.1',
    '[::1]',
    'git',
    'git.local',
    'git.internal',
    'a.home.arpa',
    '10.0.0.1',
  ]) {
    assert.equal(issuerFault(`https://${host}`), 'not-public', host);
    assert.equal(issuerFault(`https://${host}:8080`), 'not-public', host);
  }
});
