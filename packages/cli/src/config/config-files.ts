import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { TuttiError, settings, type SettingName } from '@tutti/core'
import { TomlError, parse } from 'smol-toml'

type Env = Readonly<Record<string, string | undefined>>

/** `$XDG_CONFIG_HOME/tutti/config.toml`, by default below `~/.config`. */
export function userConfigFile(env: Env): string {
  const base = env['XDG_CONFIG_HOME']
  return join(base && isAbsolute(base) ? base : join(home(env), '.config'), 'tutti', 'config.toml')
}

/** Where the data lies when nothing else is said: `$XDG_DATA_HOME/tutti`, by default `~/.local/share/tutti`. */
export function defaultDataDir(env: Env, platform: NodeJS.Platform = process.platform): string {
  const base = env['XDG_DATA_HOME']
  if (base && isAbsolute(base)) return join(base, 'tutti')
  return platform === 'darwin'
    ? join(home(env), 'Library', 'Application Support', 'tutti')
    : join(home(env), '.local', 'share', 'tutti')
}

const home = (env: Env): string => env['HOME'] || homedir()

/** The `tutti.toml` of the project that `cwd` is in: the nearest one upwards, not beyond the root of the repository. */
export function projectConfigFile(cwd: string): string | undefined {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const path = join(folder, 'tutti.toml')
    if (existsSync(path)) return path
    if (existsSync(join(folder, '.git')) || dirname(folder) === folder) return undefined
  }
}

/** What a file sets, with the line of each key. */
export type FileSettings = ReadonlyMap<
  SettingName,
  { readonly value: unknown; readonly line: number | undefined }
>

/**
 * Reads a settings file; empty when there is none.
 *
 * @throws TuttiError `invalid_argument` that names the file, the line and the key, for a syntax error or a key that is not a
 *   setting: a misspelt limit must not be a limit that is silently not there.
 */
export function readConfigFile(path: string): FileSettings {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Map()
    throw new TuttiError(
      'invalid_argument',
      `${path} cannot be read: ${(error as Error).message}`,
      { path },
      error,
    )
  }
  const found = new Map<SettingName, { value: unknown; line: number | undefined }>()
  for (const [key, value] of flatten(parseToml(text, path))) {
    const line = lineOf(text, key)
    if (!Object.hasOwn(settings, key)) {
      const hint = nearest(key)
      throw new TuttiError(
        'invalid_argument',
        `${path}${line === undefined ? '' : `:${line}`}: ${key} is not a setting.${hint ? ` Did you mean ${hint}?` : ''} "tutti config list" shows all.`,
        { path, key, ...(line === undefined ? {} : { line }) },
      )
    }
    found.set(key as SettingName, { value, line })
  }
  return found
}

function parseToml(text: string, path: string): Record<string, unknown> {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const [reason] = error.message.split('\n')
    throw new TuttiError(
      'invalid_argument',
      `${path}:${error.line}: ${reason}`,
      { path, line: error.line },
      error,
    )
  }
}

function* flatten(table: Record<string, unknown>, prefix = ''): Generator<[string, unknown]> {
  for (const [key, value] of Object.entries(table)) {
    const name = `${prefix}${key}`
    if (typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)) {
      yield* flatten(value as Record<string, unknown>, `${name}.`)
    } else yield [name, value]
  }
}

/** The parser keeps no positions of good keys; the line is only there to be looked at. */
function lineOf(text: string, key: string): number | undefined {
  const last = key.slice(key.lastIndexOf('.') + 1).replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const index = text.split('\n').findIndex((line) => new RegExp(`(^|[.\\s"'])${last}["']?\\s*=`).test(line))
  return index < 0 ? undefined : index + 1
}

function nearest(key: string): string | undefined {
  const last = key.slice(key.lastIndexOf('.') + 1)
  return Object.keys(settings).find(
    (name) => name.endsWith(`.${last}`) || name.split('.')[1]!.startsWith(last.slice(0, 4)),
  )
}
