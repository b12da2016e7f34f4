import { dirname } from 'node:path'
import { sandboxMarker } from './sandbox-marker.ts'

const usualPath = '/usr/local/bin:/usr/bin:/bin'

export interface EnvironmentParts {
  readonly id: string
  readonly home: string
  readonly tmp: string
  readonly nodePath: string
  /** Folders of the host's PATH to add: those below a mount, or all without isolation. */
  readonly extraPath: readonly string[]
  /** Where the system inside has its programs. Default: the usual three folders. */
  readonly systemPath?: string
  readonly given: Readonly<Record<string, string>>
}

/** The whole environment inside. Nothing of the worker's own is in it but what was named for the agent. */
export function baseEnvironment(parts: EnvironmentParts): Record<string, string> {
  return {
    // The pinned Node comes last: the system's own, or a mounted one, is what the agent expects where there is one.
    PATH: [...parts.extraPath, parts.systemPath ?? usualPath, dirname(parts.nodePath)].join(':'),
    HOME: parts.home,
    TMPDIR: parts.tmp,
    USER: 'agent',
    LOGNAME: 'agent',
    SHELL: '/bin/sh',
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    ...parts.given,
    [sandboxMarker]: parts.id,
  }
}

/** Those folders of a PATH that lie below one of the mounts, so that mounted programs are found by name. */
export const pathBelow = (path: string | undefined, mounts: readonly string[]): string[] =>
  (path ?? '')
    .split(':')
    .filter((folder) => mounts.some((mount) => folder === mount || folder.startsWith(`${mount}/`)))
