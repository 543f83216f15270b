/** The name of an archive on the wire. */
import { z } from 'zod';
import { REPOSITORY_PARAMS } from './params.ts';

const NAME = /^(.+)\.(tar\.gz|zip)$/s;

export const ARCHIVE_PARAMS = z.object({
  ...REPOSITORY_PARAMS.shape,
  archive: z
    .string()
    .transform((text, issues) => {
      const [, ref, format] = NAME.exec(text) ?? [];
      if (ref !== undefined && (format === 'tar.gz' || format === 'zip')) return { ref, format } as const;
      issues.addIssue({ code: 'custom', message: 'Expected `<ref>.tar.gz` or `<ref>.zip`', input: text });
      return z.NEVER;
    })
    .meta({
      description:
        '`<ref>.tar.gz` or `<ref>.zip`, where `<ref>` is what `ref` takes in `GET …/contents`. Its slashes may be percent-encoded.',
      examples: ['main.tar.gz', 'v1.0.zip'],
      wire: { type: 'string', pattern: '^.+\\.(tar\\.gz|zip)$' },
    }),
});
