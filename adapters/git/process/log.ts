/** Where the object database logs for operators; a pino logger fits. */
export interface GitLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
