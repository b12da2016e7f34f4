import { readFileSync, readdirSync } from 'node:fs'
import type { TuttiStack } from '@tutti/testkit'
import type { RunJson } from './run-json.ts'

/** Command lines of living processes that belong to a sandbox of this stack, and its sandbox folders: empty when nothing is left. */
export async function sandboxProcesses(stack: TuttiStack, _result?: RunJson): Promise<string[]> {
  const found: string[] = []
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
      if (words.includes(`${stack.dataDir}/sandboxes`)) found.push(words.slice(0, 200))
    } catch {
      // It has just ended.
    }
  }
  return found
}
