import { settings, type Setting, type SettingName } from '@tutti/core'

/** A value for every setting of the table, as resolved by the composition root. */
export type ApiConfig = {
  readonly [K in SettingName]: (typeof settings)[K] extends Setting<infer T> ? T : never
}

/** The table's defaults, with some values replaced. */
export function apiConfig(values: Partial<ApiConfig> = {}): ApiConfig {
  const defaults = Object.fromEntries(
    Object.entries(settings).map(([name, setting]) => [name, setting.default]),
  )
  return { ...defaults, ...values } as ApiConfig
}
