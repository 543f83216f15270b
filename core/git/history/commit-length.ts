/** The size of a commit in memory, for memory limits: its texts may be as large as an object may be. */
interface Person {
  readonly name: string;
  readonly email: string;
}

interface CommitTexts {
  readonly message: string;
  readonly author: Person;
  readonly committer: Person;
  readonly parents: readonly string[];
}

const PARENT_LENGTH = 64;

/** Returns the length of a commit's texts in UTF-16 code units; each parent counts 64. */
export function commitLength({ message, author, committer, parents }: CommitTexts): number {
  const people = author.name.length + author.email.length + committer.name.length + committer.email.length;
  return message.length + people + PARENT_LENGTH * parents.length;
}
