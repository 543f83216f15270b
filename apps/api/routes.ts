/**
 * Every route of the API. Each stands beside its handler, with its grant and scope, its schemas and its answers.
 *
 * Invariants: the transport enforces this table, the OpenAPI document shows it, and the tests walk it. A request
 * for a path that is not in it gets 404.
 */
import { ACCESS_TOKEN_ROUTES } from './handlers/access-tokens.ts';
import { ACCOUNT_LOG_ROUTES } from './handlers/account-log.ts';
import { ACCOUNT_STATE_ROUTES } from './handlers/account-state.ts';
import { ACTIVITY_ROUTES } from './handlers/activity.ts';
import { ARCHIVE_ROUTES } from './handlers/archives.ts';
import { AUDIT_ROUTES } from './handlers/audit.ts';
import { BLAME_ROUTES } from './handlers/blame.ts';
import { BRANCH_ROUTES } from './handlers/branches.ts';
import { COMMIT_TEXT_ROUTES } from './handlers/commit-texts.ts';
import { COMMIT_ROUTES } from './handlers/commits.ts';
import { COMPARISON_ROUTES } from './handlers/comparisons.ts';
import { CONTENTS_ROUTES } from './handlers/contents.ts';
import { DEVICE_LOGIN_ROUTES } from './handlers/device-login.ts';
import { IDENTITY_ROUTES } from './handlers/identity.ts';
import { OBJECT_ROUTES } from './handlers/objects.ts';
import { OPENAPI_ROUTES } from './handlers/openapi.ts';
import { REF_ROUTES } from './handlers/refs.ts';
import { REPOSITORY_ROUTES } from './handlers/repositories.ts';
import { REPOSITORY_ACCESS_ROUTES } from './handlers/repository-access.ts';
import { SEARCH_ROUTES } from './handlers/search.ts';
import { SIGN_IN_ROUTES } from './handlers/sign-ins.ts';
import { STORAGE_BUCKET_ROUTES } from './handlers/storage-buckets.ts';
import { TAG_ROUTES } from './handlers/tags.ts';
import { TOKEN_ACTIVITY_ROUTES } from './handlers/token-activity.ts';
import { TRUST_RULE_ROUTES } from './handlers/trust-rules.ts';
import { UNDO_ROUTES } from './handlers/undo.ts';
import { USAGE_ROUTES } from './handlers/usage.ts';
import { WEBHOOK_DELIVERY_ROUTES } from './handlers/webhook-deliveries.ts';
import { WEBHOOK_ROUTES } from './handlers/webhooks.ts';
import type { Route } from './route.ts';

/** The OpenAPI document lists the paths in this order. */
export const ROUTES: readonly Route[] = [
  ...UNDO_ROUTES,
  ...OPENAPI_ROUTES,
  ...IDENTITY_ROUTES,
  ...DEVICE_LOGIN_ROUTES,
  ...USAGE_ROUTES,
  ...REPOSITORY_ROUTES,
  ...BRANCH_ROUTES,
  ...TAG_ROUTES,
  ...REF_ROUTES,
  ...COMMIT_ROUTES,
  ...COMMIT_TEXT_ROUTES,
  ...COMPARISON_ROUTES,
  ...ARCHIVE_ROUTES,
  ...ACTIVITY_ROUTES,
  ...CONTENTS_ROUTES,
  ...BLAME_ROUTES,
  ...OBJECT_ROUTES,
  ...SEARCH_ROUTES,
  ...ACCESS_TOKEN_ROUTES,
  ...TOKEN_ACTIVITY_ROUTES,
  ...WEBHOOK_ROUTES,
  ...WEBHOOK_DELIVERY_ROUTES,
  ...ACCOUNT_LOG_ROUTES,
  ...SIGN_IN_ROUTES,
  ...AUDIT_ROUTES,
  ...ACCOUNT_STATE_ROUTES,
  ...REPOSITORY_ACCESS_ROUTES,
  ...STORAGE_BUCKET_ROUTES,
  ...TRUST_RULE_ROUTES,
];
