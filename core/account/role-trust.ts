/**
 * What a user's cloud must trust so that this service may use a bucket without a stored key: the issuer of the
 * service's identity tokens, their audience, and the subject that names one account.
 *
 * Invariants: the policy names audience and subject exactly. A policy without the subject would let every account
 * of this service use the role.
 */
import type { AccountId } from '../kernel/ids.ts';

/** The audience that Amazon's token service expects. Other clouds with the same protocol take it as well. */
export const ROLE_AUDIENCE = 'sts.amazonaws.com';

/** Stands in the policy where the user puts the number of their own cloud account. */
const CLOUD_ACCOUNT_PLACEHOLDER = 'AWS_ACCOUNT_ID';

export interface RoleSetup {
  readonly issuer: string;
  readonly audience: string;
  readonly subject: string;
  readonly trustPolicy: TrustPolicy;
}

/** In the policy language of AWS IAM, as it is pasted into a role's trust relationship. */
export interface TrustPolicy {
  readonly Version: '2012-10-17';
  readonly Statement: readonly [
    {
      readonly Effect: 'Allow';
      readonly Principal: { readonly Federated: string };
      readonly Action: 'sts:AssumeRoleWithWebIdentity';
      readonly Condition: { readonly StringEquals: Readonly<Record<string, string>> };
    },
  ];
}

/** Returns the subject of an account's identity tokens. */
export function identitySubject(account: AccountId): string {
  return `account:${account}`;
}

/**
 * Returns what the owner of a bucket enters in their cloud. `issuer` is the service's base URL. `roleArn`, if the
 * bucket has one, tells partition and number of the cloud account; else the policy holds a placeholder.
 */
export function roleSetup(issuer: string, account: AccountId, roleArn: string | null = null): RoleSetup {
  const name = issuerName(issuer);
  const subject = identitySubject(account);
  const [, partition = 'aws', cloudAccount = CLOUD_ACCOUNT_PLACEHOLDER] = ROLE_ARN.exec(roleArn ?? '') ?? [];
  return {
    issuer,
    audience: ROLE_AUDIENCE,
    subject,
    trustPolicy: {
      Version: '2012-10-17',
      Statement: [
        {
          Effect: 'Allow',
          Principal: { Federated: `arn:${partition}:iam::${cloudAccount}:oidc-provider/${name}` },
          Action: 'sts:AssumeRoleWithWebIdentity',
          Condition: { StringEquals: { [`${name}:aud`]: ROLE_AUDIENCE, [`${name}:sub`]: subject } },
        },
      ],
    },
  };
}

/** Partition, account and role of `arn:aws:iam::123456789012:role/path/name`. */
const ROLE_ARN = /^arn:(aws[a-z-]{0,20}):iam::(\d{12}):role\/[\w+=,.@/-]{1,575}$/;

/** Returns whether the text has the form of a role's name that token services accept. */
export function isRoleArn(text: string): boolean {
  return ROLE_ARN.test(text);
}

export type IssuerFault = 'not-https' | 'has-port' | 'not-public';

/**
 * Returns why Amazon cannot trust this issuer, or null: it fetches the keys by https, from a public name, without a
 * port. What only a lookup could tell is not checked.
 */
export function issuerFault(issuer: string): IssuerFault | null {
  const [, scheme = '', host = '', port] = /^(https?):\/\/(\[[^\]]*\]|[^:/]*)(:\d+)?(?:\/|$)/i.exec(issuer) ?? [];
  if (scheme.toLowerCase() !== 'https') return 'not-https';
  if (!/\.[a-z][a-z0-9-]*\.?$/i.test(host) || PRIVATE_NAMES.test(host)) return 'not-public';
  return port === undefined ? null : 'has-port';
}

/** Names that never stand in the public name system (RFC 6761, RFC 6762, RFC 8375). */
const PRIVATE_NAMES = /\.(localhost|local|internal|home\.arpa)\.?$/i;

/** IAM names an issuer by its URL without the scheme. */
function issuerName(issuer: string): string {
  return issuer.replace(/^https?:\/\//i, '');
}
