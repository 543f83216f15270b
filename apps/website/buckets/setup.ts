/** The guide: what to prepare at each provider, with the trust policy of this account ready to copy. */
import { type IssuerFault, issuerFault, roleSetup } from '../../../core/account/role-trust.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { copyBox } from '../layout/copy-box.ts';
import { type Html, html, NOTHING } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { BUCKETS } from './bucket-visit.ts';

/** What the service does in a bucket, as AWS names it. */
const PERMISSIONS = {
  Version: '2012-10-17',
  Statement: [
    { Effect: 'Allow', Action: 's3:ListBucket', Resource: 'arn:aws:s3:::BUCKET' },
    {
      Effect: 'Allow',
      Action: ['s3:PutObject', 's3:GetObject', 's3:DeleteObject', 's3:AbortMultipartUpload'],
      Resource: 'arn:aws:s3:::BUCKET/PREFIX/*',
    },
  ],
};

export function setupRoutes({ page: add }: Site): void {
  add(`${BUCKETS}/setup`, async (visit) => showSetup(visit));
}

function showSetup(visit: PersonVisit): SiteAnswer {
  const { issuer, audience, subject, trustPolicy } = roleSetup(visit.baseUrl, visit.person.account);
  const head = html`<h1 class="title">Set up a storage bucket</h1><p>What to prepare in your cloud before you make the storage bucket here.</p>`;
  const content = html`<section class="box"><header><h2>Amazon S3, without a key</h2></header><div class="inside stack">
<p>Your AWS account trusts tokens that this service signs. No key is stored, and you can end the trust at any time.</p>${issuerNote(issuerFault(issuer))}
<ol class="steps"><li><div class="stack"><p>In IAM, add an identity provider of the type OpenID Connect with this provider URL and audience:</p>${copyBox(issuer, 'the provider URL')}${copyBox(audience, 'the audience')}</div></li>
<li><div class="stack"><p>Create a role for web identity with this trust policy. Put the number of your AWS account in place of <code>AWS_ACCOUNT_ID</code>. It names <code>${subject}</code>, which is this account and no other.</p>${policyBox(trustPolicy, 'the trust policy')}</div></li>
<li><div class="stack"><p>Give the role these permissions on your bucket:</p>${policyBox(PERMISSIONS, 'the permissions')}</div></li></ol>
<div class="row"><a class="button main" href="${BUCKETS}/create/s3">New bucket with a role</a></div></div></section>
<section class="box"><header><h2>Amazon S3, with a key</h2></header><div class="inside stack"><p>Create an IAM user with the permissions above, and an access key for it.</p><div class="row"><a class="button" href="${BUCKETS}/create/s3-keys">New bucket with a key</a></div></div></section>
<section class="box"><header><h2>Cloudflare R2</h2></header><div class="inside stack"><p>Create an R2 API token with <b>Object Read &amp; Write</b> on one bucket. The page of the token shows the key’s id, the secret key and the endpoint, <code>https://ACCOUNT.r2.cloudflarestorage.com</code>.</p><div class="row"><a class="button" href="${BUCKETS}/create/r2">New R2 bucket</a></div></div></section>
<section class="box"><header><h2>MinIO</h2></header><div class="inside stack"><p>Create an access key with the permissions above. The endpoint is the address of the server’s API, by HTTPS and with a certificate that is valid everywhere.</p><div class="row"><a class="button" href="${BUCKETS}/create/minio">New MinIO bucket</a></div></div></section>`;
  return showPage(page(visit, { title: 'Set up a storage bucket', head }, content));
}

const ISSUER_FAULTS: { readonly [Fault in IssuerFault]: string } = {
  'not-https': 'it is not HTTPS',
  'has-port': 'it has a port',
  'not-public': 'its name is not public',
};

function issuerNote(fault: IssuerFault | null): Html {
  if (fault === null) return NOTHING;
  return html`<p class="note bad">AWS cannot reach the address of this service, because ${ISSUER_FAULTS[fault]}. A role works only once the operator has given it a public HTTPS address.</p>`;
}

function policyBox(policy: object, what: string): Html {
  return html`<div class="copy commands"><code tabindex="0" aria-label="${what}">${JSON.stringify(policy, null, 2)}</code><button type="button" aria-label="Copy ${what}" hidden>Copy</button></div>`;
}
