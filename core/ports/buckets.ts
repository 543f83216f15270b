/**
 * Buckets of users: how to reach one, and what trying it shows.
 *
 * Invariants: a connection holds secrets, so it is never logged and never stored outside the vault. Every request
 * to an address that a user chose passes the rules of SECURITY.md, when it is saved and at every attempt.
 */
import type { BucketFaultCode, BucketStep } from '../kernel/bucket-fault.ts';
import { CodedError } from '../kernel/coded-error.ts';
import type { AccountId } from '../kernel/ids.ts';
import type { BucketFindings } from './bucket-findings.ts';
import type { LayerStore } from './layer-store.ts';

/** How to reach a bucket at one moment. Another connection to the same bucket has other credentials. */
export interface BucketConnection {
  readonly bucketName: string;
  /** Empty, or ends in `/`. Every key of the bucket that is ours starts with it. */
  readonly keyPrefix: string;
  readonly access: StaticKeysAccess | RoleAccess;
}

export interface StaticKeysAccess {
  readonly mode: 'STATIC_KEYS';
  /** `https://host[:port]`. Null: Amazon's endpoint of the region. */
  readonly endpointUrl: string | null;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** The user's cloud trusts tokens that this service signs. Endpoint and region are the platform's choice. */
export interface RoleAccess {
  readonly mode: 'OIDC';
  readonly account: AccountId;
  readonly roleArn: string;
}

export interface BucketFault {
  readonly step: BucketStep;
  readonly code: BucketFaultCode;
  /** In plain English, from the provider where it says something, cut to 500 characters; no credential in it. */
  readonly message: string;
}

/** The first fault, or what was found out about a bucket that can be used. */
export type BucketChecked = { readonly fault: BucketFault } | { readonly findings: BucketFindings };

export interface Buckets {
  /**
   * Makes the calls that use makes, with objects of its own below the prefix. Resolves within `BUCKET_CHECK_SPAN_MS`,
   * whatever the other side does.
   */
  check(connection: BucketConnection): Promise<BucketChecked>;
  /**
   * Returns the store of a bucket's layers. Its connections are bounded, apart from those of any other bucket. Findings
   * are null if nothing is known of the bucket.
   */
  store(connection: BucketConnection, findings: BucketFindings | null): LayerStore;
}

/** Credentials of a role, from the cloud's token service. */
export interface RoleCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
  /** RFC 3339. */
  readonly expiresAt: string;
}

export interface Roles {
  /**
   * Returns credentials that hold for at least another minute. They are fetched once however many callers wait, and
   * again before they expire. Rejects with a `RoleRefused` if the cloud does not trust the token.
   */
  credentials(access: RoleAccess): Promise<RoleCredentials>;
  /**
   * Forgets these credentials, so that the next call fetches others. Call it when a store refuses them, then ask once
   * more. Does nothing if others were fetched since. Without `refused` it forgets whatever the role has, so that a
   * check tries the trust itself.
   */
  drop(access: RoleAccess, refused?: RoleCredentials): void;
}

export class RoleRefused extends CodedError<BucketFaultCode> {
  override readonly name = 'RoleRefused';
}
