import { pino, type DestinationStream, type Logger } from 'pino'

/** Control characters (C0, DEL, C1) and marks that change the direction of text or end a line (SEC-08). */
// oxlint-disable-next-line eslint/no-control-regex -- control characters are what is looked for
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** A text for people with every unsafe character shown as an escape. */
export const visible = (text: string): string => text.replaceAll(unsafe, escaped)

/**
 * The server's log: JSON, one line per entry. JSON leaves 8-bit controls and direction marks as they are; here they are escaped
 * too, so that no text from outside can command a terminal that shows the log. A parser gets the exact text back.
 */
export function createLogger({
  level,
  destination,
}: {
  level: string
  destination: DestinationStream
}): Logger {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (line: string) => destination.write(`${visible(line.trimEnd())}\n`) },
  )
}
