// refused: typescript(no-floating-promises)
export function flushLater(flush: () => Promise<void>): void {
  void flush();
}
