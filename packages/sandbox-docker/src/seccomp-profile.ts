import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { passingName } from '@tutti/processes'
import {
  inspectedCalls,
  missingCalls,
  namespaceFlags,
  refusedCalls,
  socketFamilies,
} from '@tutti/sandbox/host'

/** As in the kernel's headers: fewer than this number of address families are known to any kernel. */
const families = 64
const errno = { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97 } as const

interface Rule {
  readonly names: readonly string[]
  readonly action: 'SCMP_ACT_ERRNO'
  readonly errnoRet: number
  readonly args?: readonly {
    readonly index: 0
    readonly op: 'SCMP_CMP_EQ' | 'SCMP_CMP_GE' | 'SCMP_CMP_MASKED_EQ'
    readonly value: number
    readonly valueTwo?: number
  }[]
}

/**
 * Which system calls a container may make, in the form that engines read: the same as in a local sandbox. The engines' own lists differ;
 * that of Podman lets a program make user namespaces.
 */
export function seccompProfile(): object {
  const sockets = Object.keys(inspectedCalls).filter((name) => name.startsWith('socket'))
  const refuse = (names: readonly string[], errnoRet: number, args?: Rule['args']): Rule => ({
    names,
    action: 'SCMP_ACT_ERRNO',
    errnoRet,
    ...(args ? { args } : {}),
  })
  const others = Array.from({ length: families }, (_, number) => number).filter(
    (number) => !socketFamilies.includes(number),
  )
  const flags = Array.from({ length: 32 }, (_, bit) => 2 ** bit).filter(
    (flag) => (namespaceFlags & flag) !== 0,
  )
  return {
    defaultAction: 'SCMP_ACT_ALLOW',
    syscalls: [
      refuse(Object.keys(refusedCalls), errno.EPERM),
      refuse(Object.keys(missingCalls), errno.ENOSYS),
      // Comparisons within a rule must all hold, so that each case is a rule of its own.
      ...flags.map((flag) =>
        refuse(['clone'], errno.EPERM, [{ index: 0, op: 'SCMP_CMP_MASKED_EQ', value: flag, valueTwo: flag }]),
      ),
      ...others.map((value) => refuse(sockets, errno.EAFNOSUPPORT, [{ index: 0, op: 'SCMP_CMP_EQ', value }])),
      refuse(sockets, errno.EAFNOSUPPORT, [{ index: 0, op: 'SCMP_CMP_GE', value: families }]),
    ],
  }
}

/**
 * {@link seccompProfile} as the engine's API takes it: Docker the text, Podman the path of a file.
 *
 * @param root where that file is written; it stays.
 */
export async function seccompOption(kind: 'docker' | 'podman', root: string): Promise<string> {
  const text = JSON.stringify(seccompProfile())
  if (kind === 'docker') return text
  const path = join(root, 'seccomp.json')
  const temporary = join(root, passingName('probe'))
  await writeFile(temporary, text)
  await rename(temporary, path)
  return path
}
