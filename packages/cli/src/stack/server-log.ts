import { appendFileSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { Stream } from '../output/output.ts'

/** Where log lines go, one per call. */
export interface LogDestination {
  write(line: string): void
}

export const serverLogFile = (dataDir: string): string => join(dataDir, 'server.log')

/** pino's number of `warn`. */
const warn = 40

/**
 * Appends to `server.log` of the data folder. A disk that takes no more costs lines, never the process: `say` hears of it once,
 * and each further line is tried again, for there may be room again.
 */
export function createLogFile(dataDir: string, say: (line: string) => void): LogDestination {
  const path = serverLogFile(dataDir)
  let file: number | undefined
  let said = false
  return {
    write(line) {
      try {
        file ??= openSync(path, 'a', 0o600)
        // At once: a process that ends without an exit of its own has lost none of its last words.
        appendFileSync(file, line)
      } catch (error) {
        if (said) return
        said = true
        say(`The log ${path} cannot be written (${(error as NodeJS.ErrnoException).code}); lines are lost.`)
      }
    },
  }
}

/** Everything into the file; a terminal, where addresses are to stay in sight, gets warnings and errors only. */
export function withWarningsOn(terminal: Pick<Stream, 'write'>, file: LogDestination): LogDestination {
  return {
    write(line) {
      file.write(line)
      if ((JSON.parse(line) as { level: number }).level >= warn) terminal.write(line)
    },
  }
}
