import { safeLine } from './terminal-text.ts'

/** A word of a command line, quoted for the shell where it needs it. */
export const quoteWord = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : `'${safeLine(text).replaceAll("'", `'\\''`)}'`
