import { isSameProcess, processStart } from './process-start.ts'

/** A name for what this process makes and takes away again: when it dies in between, {@link isAbandoned} tells. */
export const passingName = (kind: string): string =>
  `${kind}-${process.pid}-${processStart(process.pid) ?? 0}`

/** Whether a name begins with a {@link passingName} of this kind whose process is dead. */
export function isAbandoned(kind: string, name: string): boolean {
  const [, pid, start] = /^-(\d+)-([\w@]+)/.exec(name.startsWith(kind) ? name.slice(kind.length) : '') ?? []
  return pid !== undefined && !isSameProcess(Number(pid), start!)
}
