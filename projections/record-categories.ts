/** The categories that hold record events. The others are operational (docs/event-forms.md). */
export const RECORD_CATEGORIES = [
  'account',
  'repository',
  'refUpdates',
  'accessToken',
  'username',
  'email',
  'deviceSession',
  'usage',
] as const;
