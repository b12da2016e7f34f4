import type { Command } from 'commander'
import { settings, type SettingName } from '@tutti/core'
import type { Cli } from '../cli.ts'
import { writeSetting } from '../config/parse-setting.ts'
import { examples } from '../examples.ts'
import { table } from '../output/table.ts'
import { safeLine } from '../output/terminal-text.ts'

interface ListFlags {
  readonly showOrigin?: boolean
}

const secrets: ReadonlySet<SettingName> = new Set(['server.api_keys'])

/** `tutti config list`: what a server that is started from here would work with. */
export function addConfig(program: Command, cli: Cli): void {
  const config = program
    .command('config')
    .description('settings: flag > environment > tutti.toml > user file > default')
  config
    .command('list')
    .description('every setting with its value')
    .option('--show-origin', 'where each value comes from, and its variable')
    .addHelpText(
      'after',
      examples('tutti config list', 'tutti config list --show-origin', 'tutti config list -o json'),
    )
    .action(
      cli.action<[], ListFlags>(async (context, { showOrigin = false }) => {
        const { output } = context
        const { values, origins } = context.config()
        const rows = (Object.keys(settings) as SettingName[]).map((name) => {
          const value = values[name]
          const { origin, detail } = origins[name]
          return {
            name,
            value: secrets.has(name) && value !== '' ? '********' : value,
            unit: settings[name].unit,
            origin,
            origin_detail: detail,
            default: settings[name].default,
            environment_variable: settings[name].env,
            why: settings[name].why,
          }
        })
        if (output.format === 'json') return output.json(rows)
        if (output.format === 'jsonl') return rows.forEach((row) => output.jsonLine(row))
        const head = ['SETTING', 'VALUE', ...(showOrigin ? ['ORIGIN', 'VARIABLE'] : [])]
        const lines = table([
          head,
          ...rows.map((row) => [
            row.name,
            row.value === '' ? '""' : safeLine(writeSetting(row.name, row.value)),
            ...(showOrigin
              ? [safeLine(`${row.origin} ${row.origin_detail}`.trim()), row.environment_variable]
              : []),
          ]),
        ])
        for (const line of lines) output.line(line)
      }),
    )
}
