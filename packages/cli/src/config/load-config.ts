import { resolve } from 'node:path'
import { TuttiError, settings, type SettingName } from '@tutti/core'
import { defaultDataDir, projectConfigFile, readConfigFile, userConfigFile } from './config-files.ts'
import { parseSetting, type SettingValue } from './parse-setting.ts'

/** Every setting in its own unit (see the core's table): what servers and workers are started with. */
export type ResolvedConfig = Readonly<Record<SettingName, SettingValue>>

export interface SettingOrigin {
  readonly origin: 'flag' | 'environment' | 'project' | 'user' | 'default'
  /** The flag, the variable, or file and line. */
  readonly detail: string
}

export interface LoadedConfig {
  readonly values: ResolvedConfig
  readonly origins: Readonly<Record<SettingName, SettingOrigin>>
}

export interface LoadConfigOptions {
  /** Settings given by flags: the text and the flag's name. */
  readonly flags?: Partial<Record<SettingName, { readonly value: string; readonly flag: string }>>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
}

/**
 * A repository that somebody else wrote must neither send the client's prompts and key elsewhere, nor know a key of the server, nor
 * say to whom a worker hands its sandboxes and what it fetches for them.
 */
const notFromProject: readonly SettingName[] = [
  'server.address',
  'server.api_keys',
  'data.dir',
  'sandboxes.engine',
  'sandboxes.pull',
]

/**
 * Flag > environment > `tutti.toml` of the project > user file > default. `data.dir` comes out absolute and never empty.
 *
 * @throws TuttiError `invalid_argument` for an unknown key or a bad value, naming where it stands.
 */
export function loadConfig({ flags = {}, env, cwd }: LoadConfigOptions): LoadedConfig {
  const project = projectConfigFile(cwd)
  const projectSettings = project === undefined ? new Map() : readConfigFile(project)
  const user = userConfigFile(env)
  const userSettings = readConfigFile(user)
  for (const name of notFromProject) {
    if (!projectSettings.has(name)) continue
    throw new TuttiError(
      'invalid_argument',
      `${project}: ${name} may not be set by a project. Set it in ${user}, by ${settings[name].env}, or by a flag.`,
      { path: project!, key: name },
    )
  }
  const values: Record<string, SettingValue> = {}
  const origins: Record<string, SettingOrigin> = {}
  for (const name of Object.keys(settings) as SettingName[]) {
    const take = (raw: unknown, origin: SettingOrigin['origin'], detail: string) => {
      values[name] = parseSetting(name, raw, detail)
      origins[name] = { origin, detail }
    }
    const variable = settings[name].env
    const inFile = projectSettings.get(name) ?? userSettings.get(name)
    const flag = flags[name]
    if (flag !== undefined) take(flag.value, 'flag', flag.flag)
    else if ((env[variable] ?? '') !== '') take(env[variable], 'environment', variable)
    else if (inFile !== undefined) {
      const fromProject = projectSettings.has(name)
      const path = fromProject ? project! : user
      take(
        inFile.value,
        fromProject ? 'project' : 'user',
        inFile.line === undefined ? path : `${path}:${inFile.line}`,
      )
    } else {
      values[name] = settings[name].default
      origins[name] = { origin: 'default', detail: '' }
    }
  }
  values['data.dir'] =
    values['data.dir'] === '' ? defaultDataDir(env) : resolve(cwd, String(values['data.dir']))
  return { values: values as ResolvedConfig, origins: origins as LoadedConfig['origins'] }
}
