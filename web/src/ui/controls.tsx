/** Buttons, fields, menus and dialogs: React Aria's behavior, our looks. */

import { type ReactNode, useEffect, useId, useRef } from 'react';
import {
  Button as AriaButton,
  type ButtonProps as AriaButtonProps,
  Checkbox as AriaCheckbox,
  Dialog as AriaDialog,
  Switch as AriaSwitch,
  Tooltip as AriaTooltip,
  Heading,
  Label,
  ListBox,
  ListBoxItem,
  Menu,
  MenuItem,
  MenuTrigger,
  Modal,
  ModalOverlay,
  Popover,
  Select,
  SelectValue,
  ToggleButton,
  ToggleButtonGroup,
  TooltipTrigger,
} from 'react-aria-components';
import { useWidth } from './canvas';
import { ChevronDown, X } from './icons';

type Variant = 'normal' | 'primary' | 'danger' | 'quiet';

interface ButtonProps extends Omit<AriaButtonProps, 'className' | 'children' | 'style'> {
  variant?: Variant;
  icon?: ReactNode;
  children?: ReactNode;
  /** A tooltip; of a button without a text also its name. */
  hint?: string;
  className?: string;
}

export function Button({ variant = 'normal', icon, children, hint, className = '', ...rest }: ButtonProps) {
  const bare = children === undefined;
  const button = (
    <AriaButton
      {...rest}
      {...(bare && hint && { 'aria-label': hint })}
      className={`button ${variant} ${bare ? 'bare' : ''} ${className}`}
    >
      {icon}
      {!bare && <span>{children}</span>}
    </AriaButton>
  );
  return hint ? <Hint text={hint}>{button}</Hint> : button;
}

/** A tooltip on something that can be focused. */
export function Hint({ text, children }: { text: string; children: ReactNode }) {
  return (
    <TooltipTrigger delay={500} closeDelay={80}>
      {children}
      <AriaTooltip className="tooltip" offset={6}>
        {text}
      </AriaTooltip>
    </TooltipTrigger>
  );
}

export interface Option<V extends string = string> {
  value: V;
  label: ReactNode;
  /** What is searched and read out, where the label is not a text. */
  text?: string;
  hint?: string;
}

export function Choice<V extends string>({
  label,
  hideLabel = false,
  options,
  value,
  onChange,
  placeholder = 'Choose',
  disabled = false,
}: {
  label: string;
  hideLabel?: boolean;
  options: readonly Option<NoInfer<V>>[];
  value: V | null;
  onChange(value: NoInfer<V>): void;
  placeholder?: string;
  disabled?: boolean;
}) {
  return (
    <Select
      className="field"
      value={value}
      onChange={(key) => key !== null && onChange(String(key) as NoInfer<V>)}
      placeholder={placeholder}
      isDisabled={disabled}
      {...(hideLabel && { 'aria-label': label })}
    >
      {!hideLabel && <Label>{label}</Label>}
      <AriaButton className="select">
        <SelectValue className="cut" />
        <ChevronDown size={14} aria-hidden />
      </AriaButton>
      <Popover className="popover" offset={4}>
        <ListBox className="listbox">
          {options.map((option) => (
            <ListBoxItem
              key={option.value}
              id={option.value}
              className="option"
              textValue={option.text ?? (typeof option.label === 'string' ? option.label : option.value)}
            >
              <span>{option.label}</span>
              {option.hint && <small>{option.hint}</small>}
            </ListBoxItem>
          ))}
        </ListBox>
      </Popover>
    </Select>
  );
}

interface FieldProps {
  label: string;
  /** What is accepted, or what it does. */
  help?: ReactNode;
  error?: string | null | undefined;
  unit?: string;
  hideLabel?: boolean;
}

/** A field's frame: label, what is in it, help or error. */
function Framed({
  label,
  help,
  error,
  unit,
  hideLabel,
  id,
  children,
}: FieldProps & { id: string; children: ReactNode }) {
  return (
    <div className="field">
      <label htmlFor={id} className={hideLabel ? 'hidden-visually' : ''}>
        {label}
      </label>
      <div className={`input ${error ? 'wrong' : ''}`}>
        {children}
        {unit && <span className="unit">{unit}</span>}
      </div>
      {error ? (
        <p id={`${id}-about`} className="about error" role="alert">
          {error}
        </p>
      ) : (
        help && (
          <p id={`${id}-about`} className="about">
            {help}
          </p>
        )
      )}
    </div>
  );
}

interface TextProps extends FieldProps {
  value: string;
  onChange(value: string): void;
  type?: 'text' | 'password' | 'search' | 'datetime-local' | 'number';
  placeholder?: string;
  mono?: boolean;
  autoFocus?: boolean;
  autoComplete?: string;
  rows?: number;
  min?: number;
  max?: number;
  step?: number | 'any';
  list?: readonly string[];
  disabled?: boolean;
  required?: boolean;
  icon?: ReactNode;
  onEnter?(): void;
}

export function TextInput({
  value,
  onChange,
  type = 'text',
  mono,
  rows,
  list,
  icon,
  onEnter,
  autoFocus,
  ...rest
}: TextProps) {
  const id = useId();
  const {
    label,
    help,
    error,
    unit,
    hideLabel,
    disabled,
    required,
    placeholder,
    autoComplete,
    min,
    max,
    step,
  } = rest;
  const shared = {
    id,
    value,
    placeholder,
    disabled,
    required,
    autoComplete: autoComplete ?? 'off',
    'aria-invalid': error ? true : undefined,
    'aria-describedby': help || error ? `${id}-about` : undefined,
    className: mono ? 'mono' : undefined,
    spellCheck: false,
    autoFocus,
  };
  return (
    <Framed {...{ label, help, error, unit, hideLabel, id }}>
      {icon}
      {rows ? (
        <textarea {...shared} rows={rows} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input
          {...shared}
          type={type}
          min={min}
          max={max}
          step={step}
          list={list ? `${id}-list` : undefined}
          onChange={(event) => onChange(event.target.value)}
          onKeyDown={(event) => event.key === 'Enter' && onEnter?.()}
        />
      )}
      {list && (
        <datalist id={`${id}-list`}>
          {list.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
      {type === 'search' && value !== '' && (
        <AriaButton
          className="clear"
          aria-label={`Clear ${label.toLowerCase()}`}
          onPress={() => onChange('')}
        >
          <X size={13} aria-hidden />
        </AriaButton>
      )}
    </Framed>
  );
}

export function Check({
  children,
  checked,
  onChange,
  disabled,
  label,
  partly,
}: {
  children?: ReactNode;
  /** Where there is no text beside it. */
  label?: string;
  checked: boolean;
  partly?: boolean;
  onChange(checked: boolean): void;
  disabled?: boolean;
}) {
  return (
    <AriaCheckbox
      className="check"
      isSelected={checked}
      isIndeterminate={partly ?? false}
      onChange={onChange}
      isDisabled={disabled ?? false}
      {...(label && { 'aria-label': label })}
    >
      <span className="box" aria-hidden>
        <svg viewBox="0 0 12 12" width="10" height="10" aria-hidden="true">
          <path
            d={partly ? 'M2 6h8' : 'M2 6.4 4.8 9 10 3'}
            fill="none"
            stroke="currentColor"
            strokeWidth="2"
          />
        </svg>
      </span>
      {children}
    </AriaCheckbox>
  );
}

export function Toggle({
  children,
  on,
  onChange,
}: {
  children: ReactNode;
  on: boolean;
  onChange(on: boolean): void;
}) {
  return (
    <AriaSwitch className="switch" isSelected={on} onChange={onChange}>
      <span className="track" aria-hidden>
        <span className="thumb" />
      </span>
      {children}
    </AriaSwitch>
  );
}

/** A few alternatives side by side. */
export function Segments<V extends string>({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  options: readonly Option<NoInfer<V>>[];
  value: V;
  onChange(value: NoInfer<V>): void;
}) {
  return (
    <ToggleButtonGroup
      className="segments"
      aria-label={label}
      selectionMode="single"
      disallowEmptySelection
      selectedKeys={[value]}
      onSelectionChange={(keys) => {
        const [key] = keys;
        if (key !== undefined) onChange(String(key) as NoInfer<V>);
      }}
    >
      {options.map((option) => (
        <ToggleButton key={option.value} id={option.value} className="segment">
          {option.label}
        </ToggleButton>
      ))}
    </ToggleButtonGroup>
  );
}

/** Parts of a page that have addresses of their own. */
export function TabBar<V extends string>({
  label,
  tabs,
  value,
  onChange,
}: {
  label: string;
  tabs: readonly Option<NoInfer<V>>[];
  value: V;
  onChange(value: NoInfer<V>): void;
}) {
  const bar = useRef<HTMLElement>(null);
  const current = tabs.findIndex((tab) => tab.value === value);
  const width = useWidth(bar);
  // On a phone there are more than fit side by side.
  useEffect(() => {
    if (width > 0) bar.current?.children[current]?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current, width]);
  return (
    <nav className="tabs" aria-label={label} ref={bar}>
      {tabs.map((tab) => (
        <button
          key={tab.value}
          type="button"
          className="tab"
          aria-current={tab.value === value ? 'page' : undefined}
          onClick={() => onChange(tab.value)}
        >
          {tab.label}
        </button>
      ))}
    </nav>
  );
}

interface MenuEntry {
  id: string;
  label: ReactNode;
  text?: string;
  danger?: boolean;
  disabled?: boolean;
  onAction(): void;
}

export function MenuButton({
  entries,
  children,
  hint,
  icon,
  variant = 'normal',
  label,
}: {
  entries: readonly MenuEntry[];
  children?: ReactNode;
  icon?: ReactNode;
  hint?: string;
  variant?: Variant;
  label?: string;
}) {
  return (
    <MenuTrigger>
      <AriaButton
        className={`button ${variant} ${children === undefined ? 'bare' : ''}`}
        {...((label ?? hint) && { 'aria-label': label ?? hint })}
      >
        {icon}
        {children !== undefined && <span>{children}</span>}
      </AriaButton>
      <Popover className="popover" offset={4}>
        <Menu className="listbox" onAction={(key) => entries.find(({ id }) => id === key)?.onAction()}>
          {entries.map((entry) => (
            <MenuItem
              key={entry.id}
              id={entry.id}
              className={`option ${entry.danger ? 'danger' : ''}`}
              isDisabled={entry.disabled ?? false}
              textValue={entry.text ?? (typeof entry.label === 'string' ? entry.label : entry.id)}
            >
              {entry.label}
            </MenuItem>
          ))}
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}

/** Something modal: a question, or a form. */
export function Dialog({
  title,
  open,
  onClose,
  children,
  footer,
  wide = false,
}: {
  title: string;
  open: boolean;
  onClose(): void;
  children: ReactNode;
  footer?: ReactNode;
  wide?: boolean;
}) {
  return (
    <ModalOverlay
      className="overlay"
      isOpen={open}
      onOpenChange={(is) => {
        if (!is) onClose();
      }}
      isDismissable
    >
      <Modal className={`modal ${wide ? 'wide' : ''}`}>
        <AriaDialog className="dialog">
          <div className="row spread dialog-head">
            <Heading slot="title" level={2}>
              {title}
            </Heading>
            <Button variant="quiet" icon={<X size={16} />} aria-label="Close" onPress={onClose} />
          </div>
          <div className="dialog-body">{children}</div>
          {footer && <div className="dialog-foot">{footer}</div>}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}
