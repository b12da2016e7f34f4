import { readlinkSync } from 'node:fs'
import type { TuttiStack } from '@tutti/testkit'

/** The living sandboxes of a stack: the processes in each pid namespace, as `PID WORDS`. */
export function sandboxesOf(stack: TuttiStack): string[][] {
  const own = namespaceOf(process.pid)
  const groups = Map.groupBy(stack.sandboxProcesses(), (line) => namespaceOf(Number.parseInt(line, 10)))
  return [...groups].flatMap(([name, lines]) => (name === own || name === '' ? [] : [lines]))
}

/** SIGKILL of every process of the sandbox in which a program with these words runs. */
export function killSandbox(stack: TuttiStack, words: string): void {
  const found = sandboxesOf(stack).find((lines) => lines.some((line) => line.includes(words)))
  if (!found) throw new Error(`No sandbox runs ${words}.`)
  killAll(found)
}

export const killAll = (lines: readonly string[]): void => signalAll(lines, 'SIGKILL')

export function signalAll(lines: readonly string[], signal: NodeJS.Signals): void {
  for (const line of lines) {
    try {
      process.kill(Number.parseInt(line, 10), signal)
    } catch {
      // It went with another one.
    }
  }
}

function namespaceOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`)
  } catch {
    return ''
  }
}
