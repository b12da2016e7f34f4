import { defaultDataDir } from './config/config-files.ts'
import type { LoadedConfig } from './config/load-config.ts'
import { quoteWord } from './output/quote-word.ts'
import { programName } from './program-name.ts'

/** Writes a command of ours as the person can type it in another terminal: `pr show 1` → `npx tutti pr show 1 --data-dir x`. */
export type CommandLine = (words: string) => string

/** Names the data folder or the server where the command would not find it by itself. */
export function createCommandLine(
  env: Readonly<Record<string, string | undefined>>,
  { values, origins }: LoadedConfig,
): CommandLine {
  const program = programName(env)
  const flag = () => {
    const address = String(values['server.address'])
    // The user's file holds for every command.
    const inFile = (name: 'server.address' | 'data.dir') => origins[name].origin === 'user'
    if (address !== '') return inFile('server.address') ? '' : ` --address ${quoteWord(address)}`
    const folder = String(values['data.dir'])
    return folder === defaultDataDir(env) || inFile('data.dir') ? '' : ` --data-dir ${quoteWord(folder)}`
  }
  const where = flag()
  return (words) => `${program} ${words}${where}`
}
