/** What became of the bucket that held a deleted repository, in the words that REST, Git and the pages share. */
import type { LostPlace } from '../../../core/kernel/refusal.ts';

/** Each is a clause about the repository, without a full stop. */
export const LOST_PLACES: { readonly [Lost in LostPlace]: string } = {
  'bucket-deleted': 'The storage bucket that held it was deleted',
  'bucket-moved': 'The storage bucket that held it was given another place',
};
