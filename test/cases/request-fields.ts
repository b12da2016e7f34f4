import type { DescField, DescMessage, JsonObject, JsonValue } from '@bufbuild/protobuf'
import { ScalarType } from '@bufbuild/protobuf'

/** One field of a request, however deep, and how a JSON client reaches it. */
export interface RequestField {
  readonly path: readonly string[]
  readonly field: DescField
}

/** Every field of a request message: those of messages, of the elements of lists and of the values of maps included. */
export function requestFields(desc: DescMessage, path: readonly string[] = []): RequestField[] {
  return desc.fields.flatMap((field) => {
    const here = [...path, field.name]
    const own = { path: here, field }
    const { message } = field
    if (!message || message.typeName.startsWith('google.protobuf.')) return [own]
    return [own, ...requestFields(message, field.fieldKind === 'list' ? [...here, '0'] : here)]
  })
}

/** The request with one value in place of what was there; parents that are not there are made. */
export function withValue(base: JsonObject, path: readonly string[], value: JsonValue): JsonObject {
  const root = structuredClone(base)
  let at: Record<string, JsonValue> = root
  for (const [index, key] of path.slice(0, -1).entries()) {
    at[key] ??= path[index + 1] === '0' ? [] : {}
    at = at[key] as Record<string, JsonValue>
  }
  at[path.at(-1)!] = value
  return root
}

/** Values of API-02 that no field of this kind can take. */
export function impossibleValues({ field }: RequestField): JsonValue[] {
  if (field.fieldKind === 'list') return ['text', 1, { a: 1 }, [null], [[1]]]
  if (field.fieldKind === 'map') return ['text', 1, [1], { a: { b: [1] } }]
  if (field.fieldKind === 'message')
    return isText(field.message) ? [1, [], {}, 'x', '-'] : ['text', 1, [], [1]]
  if (field.fieldKind === 'enum') return ['NO_SUCH_NAME', 4_711_000, -1, '', [], {}, 2 ** 63, 'NaN']
  switch (field.scalar) {
    case ScalarType.STRING:
      return [1, true, [], {}, '\ud800', 'a\udfffb', -1, 2 ** 63]
    case ScalarType.BOOL:
      return ['yes', 1, [], {}, '']
    case ScalarType.BYTES:
      return [1, '%', [], {}]
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return ['text', [], {}, 'NaN', 'Infinity', -1]
    default:
      return ['text', 'NaN', '', -1, 0.5, 2 ** 64, '18446744073709551616', [], {}]
  }
}

/** Values of API-02 that may be right or wrong, but never break anything. */
export function strangeValues({ field }: RequestField): JsonValue[] {
  const values = [null, '', 'NaN', 2 ** 63, 0, '\0', '\u202e']
  return field.scalar === ScalarType.STRING ? [...values, 'x'.repeat(1 << 20)] : values
}

const isText = ({ typeName }: DescMessage) =>
  ['google.protobuf.Duration', 'google.protobuf.Timestamp'].includes(typeName)
