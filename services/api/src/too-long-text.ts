import {
  ScalarType,
  getOption,
  hasOption,
  type DescField,
  type DescMessage,
  type Message,
} from '@bufbuild/protobuf'
import { reflect, type ReflectMessage } from '@bufbuild/protobuf/reflect'
import {
  field as rulesExtension,
  type FieldRules,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { TuttiError } from '@tutti/core'

/** Texts without a limit of their own are names, keys and ids; their patterns allow far less. */
const nameBytes = 4096

/**
 * Refuses a text that is longer than its rules allow, before its pattern is tried: a pattern over megabytes takes seconds, in which
 * nobody else is served.
 *
 * @throws TuttiError `invalid_argument` with the path of the field.
 */
export function refuseTooLongText(desc: DescMessage, message: Message): void {
  walk(reflect(desc, message), '')
}

function walk(message: ReflectMessage, path: string): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue
    const here = path === '' ? field.name : `${path}.${field.name}`
    switch (field.fieldKind) {
      case 'scalar':
        checkText(
          field.scalar,
          message.get(field),
          here,
          maxBytes(field, (rules) => rules),
        )
        break
      case 'message':
        walk(message.get(field), here)
        break
      case 'list': {
        const most = maxBytes(field, (rules) =>
          rules.type.case === 'repeated' ? rules.type.value.items : undefined,
        )
        for (const [index, item] of message.get(field).entries()) {
          if (field.listKind === 'message') walk(item as ReflectMessage, `${here}[${index}]`)
          else if (field.listKind === 'scalar') checkText(field.scalar, item, `${here}[${index}]`, most)
        }
        break
      }
      case 'map': {
        const most = maxBytes(field, (rules) =>
          rules.type.case === 'map' ? rules.type.value.values : undefined,
        )
        for (const [key, value] of message.get(field)) {
          checkText(ScalarType.STRING, key, here, nameBytes)
          const at = `${here}[${JSON.stringify(key)}]`
          if (field.mapKind === 'message') walk(value as ReflectMessage, at)
          else if (field.mapKind === 'scalar') checkText(field.scalar, value, at, most)
        }
        break
      }
      case 'enum':
        break
    }
  }
}

/** Options are decoded each time they are asked for. */
const known = new WeakMap<DescField, number>()

function maxBytes(field: DescField, part: (rules: FieldRules) => FieldRules | undefined): number {
  const bytes = known.get(field) ?? readMaxBytes(field, part)
  known.set(field, bytes)
  return bytes
}

function readMaxBytes(field: DescField, part: (rules: FieldRules) => FieldRules | undefined): number {
  const rules = hasOption(field, rulesExtension) ? part(getOption(field, rulesExtension)) : undefined
  if (rules?.type.case !== 'string' || rules.type.value.maxBytes === 0n) return nameBytes
  return Number(rules.type.value.maxBytes)
}

function checkText(scalar: ScalarType, value: unknown, field: string, most: number): void {
  if (scalar !== ScalarType.STRING || typeof value !== 'string' || value.length <= most) return
  throw new TuttiError('invalid_argument', `${field}: must be at most ${most} bytes.`, { field })
}
