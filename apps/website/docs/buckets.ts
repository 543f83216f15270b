/** What it means to keep repositories in a bucket of one's own. */
import { STORAGE_BUCKETS_MAX } from '../../../core/kernel/limits.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import type { Visit } from '../layout/visit.ts';
import { commands, DOCS, showDocs } from './frame.ts';

export function buckets(visit: Visit): SiteAnswer {
  const content = html`<p>Repositories can keep their objects in a bucket of yours instead of the platform’s storage: Amazon S3, Cloudflare R2, MinIO, or another service with the same API. A push is acknowledged after its objects are in your bucket.</p>
<ol class="guide"><li><h2>Prepare the bucket</h2>
<p><a href="/storage-buckets/setup">The setup guide</a> says what each provider needs, with the trust policy of your account ready to copy. With Amazon S3 no key is stored: your cloud trusts tokens that this service signs, and you can end the trust at any time.</p></li>
<li><h2>Create it here, and verify it</h2>
<p>Under <a href="/storage-buckets">Storage buckets</a>, or from the command line. A verification writes, reads, lists and deletes objects below the prefix, and names the step that failed.</p>
${commands(
  'Create and verify a storage bucket',
  'strata bucket oidc-setup',
  'strata bucket create --help',
  'strata bucket list',
  'strata bucket verify "$BUCKET_ID"',
)}</li>
<li><h2>Create repositories in it</h2>
<p>Choose the bucket when you create a repository, or make it the default of new ones. A repository stays where it was created.</p></li></ol>
<h2 id="rules">What holds</h2>
<ul><li>An account has at most ${STORAGE_BUCKETS_MAX} storage buckets.</li>
<li>While repositories depend on a bucket, its provider, name, prefix and endpoint cannot change; its role, region and keys can.</li>
<li>What lies in your bucket does not count as storage of your plan. Its traffic does.</li>
<li>While a bucket fails, pushes to its repositories say so with the bucket’s name. <a href="/storage-buckets">The page of the bucket</a> lists the errors.</li>
<li>To delete a storage bucket here deletes nothing in your cloud. It cannot be undone, and deleted repositories in it cannot come back.</li></ul>
<p>Over the API it is the subject <a href="${DOCS}/api/storage-buckets">Storage buckets</a>.</p>`;
  return showDocs(visit, { title: 'Storage buckets', path: `${DOCS}/buckets`, head: 'Storage buckets' }, content);
}
