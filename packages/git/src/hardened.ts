import { devNull } from 'node:os'
import { dirname } from 'node:path'

/** Old histories of honest repositories have these; they harm nobody. */
const harmless = ['zeroPaddedFilemode', 'badTimezone', 'missingSpaceBeforeDate', 'missingEmail']

/**
 * Configuration that stands before every command of ours (research: host git experiment). It switches off each key through
 * which a repository could start a program, and what would work behind our back.
 */
export const hardenedConfig: readonly string[] = [
  `core.hooksPath=${devNull}`,
  'core.fsmonitor=false',
  `core.attributesFile=${devNull}`,
  'core.commitGraph=false',
  'core.quotePath=true',
  'core.alternateRefsCommand=true',
  'protocol.ext.allow=never',
  'transfer.fsckObjects=true',
  ...harmless.map((name) => `fetch.fsck.${name}=ignore`),
  // What was acknowledged must survive a power loss: objects and refs alike.
  'core.fsync=all',
  'core.fsyncMethod=batch',
  'gc.auto=0',
  'maintenance.auto=false',
  'credential.helper=',
  'commit.gpgSign=false',
  'push.gpgSign=false',
  'push.followTags=false',
  'fetch.recurseSubmodules=false',
  'push.recurseSubmodules=no',
  'submodule.recurse=false',
  'merge.directoryRenames=false',
  'merge.renames=true',
  'merge.renormalize=false',
  'diff.renames=false',
  'diff.noprefix=false',
  'diff.mnemonicPrefix=false',
  'diff.indentHeuristic=true',
]

/**
 * The other end of a local transport is git too, run in the user's own repository and ignorant of our `-c`: git clears them
 * from its environment. So its command line carries them. Constants only: the string goes through a shell.
 */
const farEnd = [
  `core.hooksPath=${devNull}`,
  'core.fsmonitor=false',
  'core.alternateRefsCommand=true',
  'protocol.ext.allow=never',
  'receive.denyCurrentBranch=refuse',
  'receive.denyDeleteCurrent=refuse',
  'receive.autogc=false',
  'gc.auto=0',
  'maintenance.auto=false',
  // The user has registered this repository; who owns its folder is not a reason to refuse it.
  'safe.directory=*',
]
/** What an agent made must not get in when it could not be fetched again, by us or by others. */
const onReceiving = ['receive.fsckObjects=true', ...harmless.map((name) => `receive.fsck.${name}=ignore`)]

const inShell = (pairs: readonly string[]) => pairs.map((pair) => `-c '${pair}'`).join(' ')

/** For `--upload-pack=` and `--receive-pack=` with a local location. */
export const localUploadPack = `git ${inShell(farEnd)} upload-pack`
export const localReceivePack = `git ${inShell([...farEnd, ...onReceiving])} receive-pack`

export type Protocol = 'https' | 'ssh' | 'file'

/** Names that only the network needs; everything else of our own environment stays outside. */
const networkNames = {
  https: ['HTTPS_PROXY', 'https_proxy', 'NO_PROXY', 'no_proxy', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
  ssh: ['SSH_AUTH_SOCK'],
  file: [],
} as const satisfies Record<Protocol, readonly string[]>

/**
 * The whole environment of a git process. Nothing is inherited but PATH and what the protocol needs: an inherited `GIT_DIR`
 * would send our commits into another repository.
 *
 * @param home an empty folder of ours.
 * @param protocol the one transport that this command may use; none when it needs no remote.
 */
export function hardenedEnvironment(
  home: string,
  gitDir: string | undefined,
  protocol?: Protocol,
): Record<string, string> {
  const passed = (protocol ? networkNames[protocol] : []).flatMap((name) => {
    const value = process.env[name]
    return value ? [[name, value] as const] : []
  })
  return {
    ...Object.fromEntries(passed),
    PATH: process.env['PATH'] ?? '/usr/bin:/bin',
    HOME: home,
    XDG_CONFIG_HOME: home,
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: devNull,
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: 'true',
    SSH_ASKPASS: 'true',
    GIT_SSH_COMMAND: 'ssh -oBatchMode=yes -oClearAllForwardings=yes -oPermitLocalCommand=no',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_NO_LAZY_FETCH: '1',
    // A folder strictly above the current one, or git ignores it: then a command without a mirror would find, and obey, the
    // repository that the data folder happens to lie in.
    GIT_CEILING_DIRECTORIES: dirname(home),
    // An empty list would mean git's own defaults.
    GIT_ALLOW_PROTOCOL: protocol ?? 'none',
    ...(gitDir === undefined ? {} : { GIT_DIR: gitDir }),
  }
}

/** Who signs what Tutti makes; fixed, so that the same request gives the same commit. */
export const identity = { name: 'Tutti', email: 'tutti@localhost' }

/** Author and committer of a commit that `git commit-tree` makes. */
export function identityEnvironment(atMs: number): Record<string, string> {
  const date = `@${gitDate(atMs)}`
  return {
    GIT_AUTHOR_NAME: identity.name,
    GIT_AUTHOR_EMAIL: identity.email,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: identity.name,
    GIT_COMMITTER_EMAIL: identity.email,
    GIT_COMMITTER_DATE: date,
  }
}

/** git's form of a date: whole seconds, UTC. */
export const gitDate = (atMs: number): string => `${Math.floor(atMs / 1000)} +0000`
