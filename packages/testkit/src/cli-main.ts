import { fileURLToPath } from 'node:url'

/** The command line's main file, as sources. */
export const cliMain = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url))
